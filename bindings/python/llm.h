// The engine and its requests as Python objects.
#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deepinfer/llm.h"

namespace deepinfer::python {

// An LLM that waits for its threads without the GIL when it goes, since they may need it for
// callbacks. All methods need the GIL.
class PythonLlm {
 public:
  // Options by name, "_" or "-" between words, over those of the environment; None leaves one.
  explicit PythonLlm(const pybind11::dict& options);
  ~PythonLlm();
  PythonLlm(const PythonLlm&) = delete;
  PythonLlm& operator=(const PythonLlm&) = delete;

  // Ends requests in flight; nothing happens the second time. Refused inside a callback.
  void Close();
  // All engines, at the interpreter's end.
  static void CloseAll();
  bool closed() const { return llm_ == nullptr; }

  // Throws where it is closed, or this is a fork of the process that loaded it.
  std::shared_ptr<LLM> Get() const;

 private:
  void Release();

  std::shared_ptr<LLM> llm_;
  pid_t process_;
};

// A request and, so that it can go on, its engine.
class PythonRequest {
 public:
  PythonRequest(RequestHandle handle, pybind11::object llm, bool has_callback)
      : handle_(std::move(handle)), llm_(std::move(llm)), has_callback_(has_callback) {}

  uint64_t id() const { return handle_.id(); }
  // std::nullopt: all was given out. Raises TimeoutError.
  std::optional<OutputDelta> Next(std::optional<double> timeout);
  // Raises TimeoutError.
  RequestOutput Wait(std::optional<double> timeout);
  RequestOutput Snapshot() const { return handle_.Snapshot(); }
  void Cancel() { handle_.Cancel(); }
  bool finished() const { return handle_.finished(); }

 private:
  RequestHandle handle_;
  pybind11::object llm_;
  bool has_callback_;
};

}  // namespace deepinfer::python
