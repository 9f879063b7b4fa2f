// What requests and engines give: read-only records with the names of the C++ API.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "deepinfer/result.h"
#include "deepinfer/stats.h"
#include "python/bind.h"
#include "python/convert.h"

namespace deepinfer::python {
namespace {

namespace py = pybind11;

template <typename T>
py::object Write(const T& value) {
  return py::cast(value);
}
py::object Write(const std::string& text) { return ToStr(text); }
py::object Write(const std::optional<std::string>& text) {
  return text ? ToStr(*text) : py::object(py::none());
}
py::object Write(const std::optional<FinishReason>& reason) {
  if (!reason) return py::none();
  // Both limits are "length" to FinishReasonName.
  if (*reason == FinishReason::kContext) return py::str("context");
  return ToStr(std::string(FinishReasonName(*reason)));
}

// A class whose attributes are members of T, with a repr of all of them.
template <typename T>
class Record {
 public:
  Record(py::module_& module, const char* name, const char* doc) : class_(module, name, doc) {
    class_.attr("__match_args__") = py::tuple();
    class_.def("__repr__", [](const py::object& self) {
      const py::object type = py::type::of(self);
      std::string text;
      for (const py::handle field : type.attr("__match_args__")) {
        text += (text.empty() ? "" : ", ") + std::string(py::str(field)) + "=" +
                std::string(py::repr(self.attr(py::reinterpret_borrow<py::str>(field))));
      }
      return std::string(py::str(type.attr("__name__"))) + "(" + text + ")";
    });
  }

  template <typename Member>
  Record& Add(const char* name, Member T::* member, const char* doc) {
    class_.def_property_readonly(
        name, [member](const T& self) { return Write(self.*member); }, doc);
    py::list fields(class_.attr("__match_args__"));
    fields.append(name);
    class_.attr("__match_args__") = py::tuple(fields);
    return *this;
  }

 private:
  py::class_<T> class_;
};

void BindOutputs(py::module_& module) {
  Record<TokenLogprob>(module, "TokenLogprob", "A token and its log-probability.")
      .Add("token", &TokenLogprob::token, "Its id.")
      .Add("logprob", &TokenLogprob::logprob, "Natural logarithm of its probability.");
  Record<TokenLogprobs>(module, "TokenLogprobs", "Log-probabilities at one place.")
      .Add("chosen", &TokenLogprobs::chosen, "Of the token that stands there.")
      .Add("rank", &TokenLogprobs::rank, "Of the chosen token, from 1.")
      .Add("top", &TokenLogprobs::top, "The best tokens, best first.");
  Record<CompletionOutput>(module, "CompletionOutput", "One answer; of n choices each has its own.")
      .Add("index", &CompletionOutput::index, "Of the choice.")
      .Add("text", &CompletionOutput::text, "Without end tokens and stop string.")
      .Add("token_ids", &CompletionOutput::token_ids, "All that were drawn.")
      .Add("logprobs", &CompletionOutput::logprobs,
           "One a token, where SamplingParams.logprobs is set.")
      .Add("cumulative_logprob", &CompletionOutput::cumulative_logprob, "Sum of the chosen ones.")
      .Add("finish_reason", &CompletionOutput::finish_reason,
           "\"stop\", \"length\" (max_tokens), \"context\" (it is full), \"cancelled\", "
           "\"deadline\",\n\"error\"; None: not finished.")
      .Add("stop_token", &CompletionOutput::stop_token,
           "The token of stop_token_ids that ended it.")
      .Add("stop_string", &CompletionOutput::stop_string, "The string of stop that ended it.")
      .Add("error", &CompletionOutput::error, "With finish_reason \"error\": why.");
  Record<Usage>(module, "Usage", "Tokens that a request took.")
      .Add("prompt_tokens", &Usage::prompt_tokens, "Of the prompt.")
      .Add("cached_tokens", &Usage::cached_tokens, "Of them, taken from the prefix cache.")
      .Add("completion_tokens", &Usage::completion_tokens, "Of all choices.");
  Record<RequestTimings>(module, "RequestTimings",
                         "In seconds since the request was submitted; 0: it did not come so far.")
      .Add("scheduled", &RequestTimings::scheduled, "Its first row was planned.")
      .Add("first_token", &RequestTimings::first_token, "Of any choice.")
      .Add("finished", &RequestTimings::finished, "The last choice ended.");
  Record<RequestOutput>(module, "RequestOutput", "What a request gave.")
      .Add("request_id", &RequestOutput::request_id, "RequestHandle.id.")
      .Add("prompt_token_ids", &RequestOutput::prompt_token_ids, "What the model read.")
      .Add("prompt_logprobs", &RequestOutput::prompt_logprobs,
           "One a prompt token but the first, where SamplingParams.prompt_logprobs is set.")
      .Add("outputs", &RequestOutput::outputs, "One CompletionOutput a choice.")
      .Add("usage", &RequestOutput::usage, "Usage.")
      .Add("timings", &RequestOutput::timings, "RequestTimings.")
      .Add("preemptions", &RequestOutput::preemptions,
           "How often a choice lost its memory to others and was computed again.")
      .Add("finished", &RequestOutput::finished, "All choices have ended.");
  Record<OutputDelta>(module, "OutputDelta", "What came for one choice since the last one.")
      .Add("index", &OutputDelta::index, "Of the choice.")
      .Add("text", &OutputDelta::text,
           "Whole characters, no part of which may begin a stop string.")
      .Add("token_ids", &OutputDelta::token_ids, "As in CompletionOutput.")
      .Add("logprobs", &OutputDelta::logprobs, "As in CompletionOutput.")
      .Add("finish_reason", &OutputDelta::finish_reason, "Set: the last delta of this choice.")
      .Add("error", &OutputDelta::error, "With finish_reason \"error\": why.");
}

void BindStats(py::module_& module) {
  Record<StepTimes>(module, "StepTimes", "Where the time of steps went, in seconds, summed.")
      .Add("plan", &StepTimes::plan, "Choosing rows.")
      .Add("forward", &StepTimes::forward, "The model.")
      .Add("sample", &StepTimes::sample, "Drawing tokens.")
      .Add("mask", &StepTimes::mask, "The device waited for grammar masks.")
      .Add("host", &StepTimes::host, "Applying results.")
      .Add("idle", &StepTimes::idle, "The device waited although requests were running.");
  Record<EngineStats>(module, "EngineStats", "What an engine has done so far and does now.")
      .Add("waiting", &EngineStats::waiting, "Requests in the queue.")
      .Add("running", &EngineStats::running, "Requests that hold memory.")
      .Add("finished", &EngineStats::finished, "Choices that ended.")
      .Add("failed", &EngineStats::failed, "Of them, with an error.")
      .Add("steps", &EngineStats::steps, "Forward passes planned.")
      .Add("discarded_rows", &EngineStats::discarded_rows,
           "Computed after a stop that could not be foreseen.")
      .Add("preemptions", &EngineStats::preemptions, "Choices that lost their memory to others.")
      .Add("prompt_tokens", &EngineStats::prompt_tokens, "Of admitted requests.")
      .Add("computed_prompt_tokens", &EngineStats::computed_prompt_tokens, "Rows of prompts.")
      .Add("generated_tokens", &EngineStats::generated_tokens, "Tokens drawn.")
      .Add("prefix_query_tokens", &EngineStats::prefix_query_tokens,
           "Prompt tokens that were looked up in the prefix cache.")
      .Add("prefix_hit_tokens", &EngineStats::prefix_hit_tokens, "Of them, found.")
      .Add("kv_blocks", &EngineStats::kv_blocks, "Of the KV cache.")
      .Add("kv_blocks_free", &EngineStats::kv_blocks_free, "Of them, free.")
      .Add("kv_blocks_cached", &EngineStats::kv_blocks_cached,
           "Idle, but kept for a prompt that begins alike.")
      .Add("kv_blocks_peak", &EngineStats::kv_blocks_peak, "Most that were not free.")
      .Add("times", &EngineStats::times, "StepTimes.");
}

}  // namespace

void BindRecords(py::module_& module) {
  BindOutputs(module);
  BindStats(module);
}

}  // namespace deepinfer::python
