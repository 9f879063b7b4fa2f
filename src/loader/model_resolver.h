// Which checkpoint folder to use when the user names one, or none.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "loader/hub_cache.h"

namespace deepinfer {

struct ModelQuery {
  // The --model argument: a folder or a repository id "org/name". Empty: none was given.
  std::string model;
  EnvironmentFn environment;
  // Where the shipped checkpoint is looked for: models/nano in executable_folder and its parents,
  // share/deepinfer/models/nano beside them, then models/nano in current_folder.
  std::filesystem::path executable_folder;
  std::filesystem::path current_folder;
  // False accepts a folder that holds config.json alone.
  bool needs_weights = true;
};

struct ResolvedModel {
  std::filesystem::path folder;
  std::string reason;  // one sentence for the user: which rule chose the folder
};

// First match wins: `model`; DEEPINFER_HF_MODEL_DIR; kDefaultRepository in the Hugging Face cache;
// the shipped checkpoint. A rule that applies but leads to something unusable (a file, a missing
// folder, a snapshot with missing files) is an error: later rules are not tried.
Result<ResolvedModel> ResolveModel(const ModelQuery& query);

// Checks that a folder holds config.json and, with needs_weights, tokenizer.json and every weight
// file that its index names. kNotFound for what is missing, kInvalidArgument for a file,
// kUnsupported for another architecture (with needs_weights).
Status CheckCheckpointFolder(const std::filesystem::path& folder, bool needs_weights);

}  // namespace deepinfer
