#include "python/llm.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "python/bind.h"
#include "python/blocking.h"
#include "python/callback.h"
#include "python/convert.h"
#include "python/errors.h"

namespace deepinfer::python {
namespace {

namespace py = pybind11;

constexpr int64_t kMaxPriority = 1000;
constexpr double kMaxSeconds = 1e9;

// Also from the thread that an engine's destruction waits for.
void Destroy(LLM* llm) {
  if (!InCallback()) {
    delete llm;
    return;
  }
  std::thread([llm, count = std::make_shared<BlockingCall::Count>()] { delete llm; }).detach();
}

// Engines that are not closed. Guarded by the GIL.
std::set<PythonLlm*>& OpenEngines() {
  static auto* engines = new std::set<PythonLlm*>();  // outlives the interpreter
  return *engines;
}

std::string OptionText(py::handle value, const std::string& name) {
  if (py::isinstance<py::bool_>(value)) return ReadFlag(value, name) ? "1" : "0";
  if (py::isinstance<py::str>(value)) return ReadText(value, name);
  if (PyIndex_Check(value.ptr()) != 0) return std::to_string(ReadInteger(value, name));
  if (py::isinstance<py::float_>(value)) return std::string(py::repr(value));
  const auto path = py::reinterpret_steal<py::object>(PyOS_FSPath(value.ptr()));
  if (path) return ReadText(path, name);
  PyErr_Clear();
  Refuse(name + " " + Shown(value) + " is no str, number, bool or path");
}

EngineOptions ReadOptions(const py::dict& values) {
  EngineOptions options = EngineOptions::FromEnvironment();
  for (const auto [key, value] : values) {
    std::string name = ReadText(key, "an option");
    std::replace(name.begin(), name.end(), '_', '-');
    if (!value.is_none()) options.Set(name, OptionText(value, name));
  }
  return options;
}

std::optional<double> ReadSeconds(py::handle value, const std::string& name) {
  if (value.is_none()) return std::nullopt;
  const double seconds = ReadReal(value, name);
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) {
    Refuse(name + " " + Shown(value) + " is outside 0 to 1e9 seconds");
  }
  return seconds;
}

const SamplingParams& ReadParams(py::handle value, const std::string& name) {
  static const SamplingParams defaults;
  if (value.is_none()) return defaults;
  if (!py::isinstance<SamplingParams>(value)) {
    Refuse(name + " " + Shown(value) + " is no SamplingParams");
  }
  return value.cast<const SamplingParams&>();
}

std::string Place(const char* name, size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

std::vector<PromptInput> ReadPrompts(py::handle value) {
  std::vector<PromptInput> prompts;
  if (py::isinstance<py::str>(value) || py::isinstance<py::dict>(value)) {
    prompts.push_back(ReadPrompt(value, "prompts"));
    return prompts;
  }
  for (const py::handle prompt : ReadList(value, "prompts", "prompts")) {
    prompts.push_back(ReadPrompt(prompt, Place("prompts", prompts.size())));
  }
  return prompts;
}

// One for all, or a list with one for each.
std::vector<SamplingParams> ReadAllParams(py::handle value, size_t prompts) {
  if (value.is_none() || py::isinstance<SamplingParams>(value)) {
    return std::vector<SamplingParams>(prompts, ReadParams(value, "sampling_params"));
  }
  std::vector<SamplingParams> params;
  for (const py::handle entry : ReadList(value, "sampling_params", "SamplingParams")) {
    params.push_back(ReadParams(entry, Place("sampling_params", params.size())));
  }
  if (params.size() != prompts) {
    Refuse("sampling_params has " + std::to_string(params.size()) + " entries for " +
           std::to_string(prompts) + " prompts; it is one SamplingParams, or one for each prompt");
  }
  return params;
}

std::vector<RequestOutput> Generate(const PythonLlm& self, const py::object& prompts,
                                    const py::object& sampling_params) {
  const std::vector<PromptInput> inputs = ReadPrompts(prompts);
  const std::vector<SamplingParams> params = ReadAllParams(sampling_params, inputs.size());
  std::vector<RequestHandle> handles;
  {
    std::shared_ptr<LLM> llm = self.Get();
    const BlockingCall blocking;
    // Gone before the wait, so that the engine can be closed meanwhile.
    const std::shared_ptr<LLM> used = std::move(llm);
    handles = used->SubmitAll(inputs, params);
  }
  std::vector<RequestOutput> outputs;
  try {
    for (RequestHandle& handle : handles) {
      outputs.push_back(*WaitWithSignals(
          std::nullopt, [&](std::chrono::milliseconds time) { return handle.WaitFor(time); }));
    }
  } catch (...) {
    for (RequestHandle& handle : handles) handle.Cancel();
    throw;
  }
  return outputs;
}

PythonRequest Submit(const py::object& self, const py::object& prompt,
                     const py::object& sampling_params, const py::object& on_output,
                     const py::object& priority, const py::object& deadline,
                     const py::object& cache_salt) {
  const PromptInput input = ReadPrompt(prompt, "prompt");
  const SamplingParams params = ReadParams(sampling_params, "sampling_params");
  RequestOptions options;
  options.priority =
      static_cast<int32_t>(ReadInteger(priority, "priority", -kMaxPriority, kMaxPriority));
  options.cache_salt = ReadText(cache_salt, "cache_salt");
  if (const std::optional<double> seconds = ReadSeconds(deadline, "deadline")) {
    options.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(*seconds));
  }
  const bool has_callback = !on_output.is_none();
  if (has_callback) {
    if (PyCallable_Check(on_output.ptr()) == 0) {
      Refuse("on_output " + Shown(on_output) + " cannot be called");
    }
    options.on_output = MakeCallback(on_output, params.n);
  }
  std::shared_ptr<LLM> llm = self.cast<const PythonLlm&>().Get();
  std::optional<RequestHandle> handle;
  {
    const BlockingCall blocking;
    const std::shared_ptr<LLM> used = std::move(llm);
    handle = used->Submit(input, params, std::move(options));
  }
  return {std::move(*handle), self, has_callback};
}

}  // namespace

PythonLlm::PythonLlm(const py::dict& options) : process_(::getpid()) {
  const EngineOptions values = ReadOptions(options);
  {
    const BlockingCall blocking;
    llm_ = std::shared_ptr<LLM>(new LLM(values), Destroy);
  }
  OpenEngines().insert(this);
}

PythonLlm::~PythonLlm() { Release(); }

void PythonLlm::Close() {
  if (InCallback()) {
    throw Exception(Exception::Kind::kUnsupported,
                    "close() waits for callbacks, so it cannot be called in one");
  }
  Release();
}

void PythonLlm::CloseAll() {
  std::set<PythonLlm*>& engines = OpenEngines();
  while (!engines.empty()) (*engines.begin())->Release();
  BlockingCall::WaitForAll();
}

void PythonLlm::Release() {
  OpenEngines().erase(this);
  std::shared_ptr<LLM> llm = std::move(llm_);
  if (llm == nullptr) return;
  if (::getpid() != process_) {
    // The threads are the parent's; waiting for them here would never end.
    (void)new std::shared_ptr<LLM>(std::move(llm));
    return;
  }
  const BlockingCall blocking;
  llm.reset();
}

std::shared_ptr<LLM> PythonLlm::Get() const {
  if (llm_ == nullptr) throw Exception(Exception::Kind::kCancelled, "the LLM is closed");
  if (::getpid() != process_) {
    throw Exception(Exception::Kind::kUnsupported,
                    "the LLM belongs to the process that this one was forked from; make another, "
                    "or start processes by \"spawn\"");
  }
  return llm_;
}

std::optional<OutputDelta> PythonRequest::Next(std::optional<double> timeout) {
  if (has_callback_) {
    throw Exception(Exception::Kind::kUnsupported,
                    "the deltas of this request go to its on_output");
  }
  // Outer: an answer. Inner: a delta, or none because all was given out.
  using Answer = std::optional<std::optional<OutputDelta>>;
  const auto answer = WaitWithSignals(timeout, [&](std::chrono::milliseconds time) -> Answer {
    const bool finished = handle_.finished();
    std::optional<OutputDelta> delta = handle_.NextWithin(time);
    if (!delta && !finished) return std::nullopt;
    return delta;
  });
  if (!answer) {
    PyErr_SetString(PyExc_TimeoutError, "the request gave nothing within the timeout");
    throw py::error_already_set();
  }
  return *answer;
}

RequestOutput PythonRequest::Wait(std::optional<double> timeout) {
  auto output = WaitWithSignals(
      timeout, [&](std::chrono::milliseconds time) { return handle_.WaitFor(time); });
  if (!output) {
    PyErr_SetString(PyExc_TimeoutError, "the request has not ended within the timeout");
    throw py::error_already_set();
  }
  return std::move(*output);
}

void BindLlm(py::module_& module) {
  py::class_<PythonRequest>(module, "RequestHandle",
                            "A request that runs. Keeps its engine alive; iterating gives the\n"
                            "deltas. Safe from several threads.")
      .def_property_readonly("id", &PythonRequest::id, "Names the request in its output.")
      .def_property_readonly("finished", &PythonRequest::finished, "All choices have ended.")
      .def(
          "next",
          [](PythonRequest& self, const py::object& timeout) {
            return self.Next(ReadSeconds(timeout, "timeout"));
          },
          py::arg("timeout") = py::none(),
          "Waits for the next OutputDelta of any choice; None: all have ended. TimeoutError after\n"
          "`timeout` seconds. Not for a request with on_output.")
      .def(
          "wait",
          [](PythonRequest& self, const py::object& timeout) {
            return self.Wait(ReadSeconds(timeout, "timeout"));
          },
          py::arg("timeout") = py::none(),
          "Waits until all choices have ended. TimeoutError after `timeout` seconds.")
      .def("snapshot", &PythonRequest::Snapshot, "The RequestOutput so far.")
      .def("cancel", &PythonRequest::Cancel,
           "Ends the request with \"cancelled\" unless it has ended; returns at once.")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", [](PythonRequest& self) {
        std::optional<OutputDelta> delta = self.Next(std::nullopt);
        if (!delta) throw py::stop_iteration();
        return std::move(*delta);
      });

  py::class_<PythonLlm>(module, "LLM", "See deepinfer.LLM.")
      .def(py::init<const py::dict&>(), py::arg("options"))
      .def("generate", &Generate, py::arg("prompts"), py::arg("sampling_params") = py::none())
      .def("submit", &Submit, py::arg("prompt"), py::arg("sampling_params") = py::none(),
           py::kw_only(), py::arg("on_output") = py::none(), py::arg("priority") = 0,
           py::arg("deadline") = py::none(), py::arg("cache_salt") = "")
      .def(
          "tokenize",
          [](const PythonLlm& self, const py::object& text) {
            const std::string plain = ReadText(text, "text");
            return self.Get()->Tokenize(plain);
          },
          py::arg("text"))
      .def(
          "detokenize",
          [](const PythonLlm& self, const py::object& token_ids) {
            return ToStr(self.Get()->Detokenize(ReadTokenIds(token_ids, "token_ids")));
          },
          py::arg("token_ids"))
      .def("stats", [](const PythonLlm& self) { return self.Get()->Stats(); })
      .def("metrics_text", [](const PythonLlm& self) { return ToStr(self.Get()->MetricsText()); })
      .def("memory_text", [](const PythonLlm& self) { return ToStr(self.Get()->MemoryText()); })
      .def_property_readonly("max_model_len",
                             [](const PythonLlm& self) { return self.Get()->max_model_len(); })
      .def_property_readonly("closed", &PythonLlm::closed)
      .def("close", &PythonLlm::Close);
  // Before the interpreter ends: callbacks and waiting threads need it.
  py::module_::import("atexit").attr("register")(py::cpp_function(&PythonLlm::CloseAll));
}

}  // namespace deepinfer::python
