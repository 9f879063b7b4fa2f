// Offline inference in C++: a batch of prompts, then one answer as it arrives.
//   build/release/offline_inference [MODEL]
#include <cstdio>
#include <exception>

#include "deepinfer/llm.h"

int main(int argc, char** argv) try {
  auto options = deepinfer::EngineOptions::FromEnvironment();
  if (argc > 1) options.Set("model", argv[1]);
  deepinfer::LLM llm(options);

  const deepinfer::SamplingParams params{
      .temperature = 0.6, .top_p = 0.95, .seq_seed = 1, .max_tokens = 32};
  const std::vector<deepinfer::PromptInput> prompts = {
      deepinfer::ChatMessages{R"({"messages": [{"role": "user", "content": "What is 17 + 25?"}]})"},
      deepinfer::TextPrompt{"It was a dark and stormy night"}};
  for (const deepinfer::RequestOutput& output : llm.Generate(prompts, params)) {
    std::printf("%s\n", output.outputs[0].text.c_str());
  }

  deepinfer::SamplingParams number{.max_tokens = 32};
  number.so_args = deepinfer::StructuredOutput{"regex", "[0-9]{1,3}"};
  deepinfer::RequestHandle request = llm.Submit(prompts[0], number);
  while (const auto delta = request.Next()) std::printf("%s", delta->text.c_str());
  std::printf("\n");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
