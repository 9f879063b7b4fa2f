// SamplingParams: one table of fields makes the constructor, the attributes and repr.
#include "deepinfer/sampling_params.h"

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <type_traits>

#include "python/bind.h"
#include "python/convert.h"
#include "python/errors.h"

namespace deepinfer::python {
namespace {

namespace py = pybind11;

void Read(py::handle value, const std::string& name, bool& target) {
  target = ReadFlag(value, name);
}
void Read(py::handle value, const std::string& name, double& target) {
  target = ReadReal(value, name);
}
void Read(py::handle value, const std::string& name, int64_t& target) {
  target = ReadInteger(value, name);
}
void Read(py::handle value, const std::string& name, uint64_t& target) {
  target = ReadUnsigned(value, name);
}
void Read(py::handle value, const std::string& name, std::optional<int64_t>& target) {
  target.reset();
  if (!value.is_none()) target = ReadInteger(value, name);
}
void Read(py::handle value, const std::string& name, std::vector<int32_t>& target) {
  target = value.is_none() ? std::vector<int32_t>() : ReadTokenIds(value, name);
}

void Read(py::handle value, const std::string& name, std::vector<std::string>& target) {
  std::vector<std::string> texts;
  if (py::isinstance<py::str>(value)) {
    texts.push_back(ReadText(value, name));
  } else if (!value.is_none()) {
    for (const py::handle text : ReadList(value, name, "str")) {
      texts.push_back(ReadText(text, name + "[" + std::to_string(texts.size()) + "]"));
    }
  }
  target = std::move(texts);
}

void Read(py::handle value, const std::string& name, std::vector<LogitBias>& target) {
  std::vector<LogitBias> biases;
  if (!value.is_none()) {
    if (!py::isinstance<py::dict>(value)) {
      Refuse(name + " " + Shown(value) + " is no dict from token id to bias");
    }
    for (const auto [token, bias] : py::reinterpret_borrow<py::dict>(value)) {
      biases.push_back({static_cast<int32_t>(ReadInteger(token, name + ": token id", 0, INT32_MAX)),
                        ReadReal(bias, name + "[" + Shown(token) + "]")});
    }
  }
  target = std::move(biases);
}

std::string ReadSchema(py::handle schema, const std::string& type, const std::string& name) {
  if (schema.is_none()) return {};
  const bool is_json_schema = type == "json_schema" || type == "json";
  const bool is_value = py::isinstance<py::dict>(schema) || py::isinstance<py::bool_>(schema);
  return is_json_schema && is_value ? ReadJson(schema, name) : ReadText(schema, name);
}

void Read(py::handle value, const std::string& name, std::optional<StructuredOutput>& target) {
  target.reset();
  if (value.is_none()) return;
  if (!py::isinstance<py::dict>(value)) {
    Refuse(name + " " + Shown(value) + " is no dict with schema_type and schema");
  }
  const auto dict = py::reinterpret_borrow<py::dict>(value);
  for (const auto [key, entry] : dict) {
    if (!key.equal(py::str("schema_type")) && !key.equal(py::str("schema"))) {
      Refuse(name + " has no key " + Shown(key) + "; it has schema_type and schema");
    }
  }
  if (!dict.contains("schema_type")) Refuse(name + " " + Shown(value) + " has no schema_type");
  StructuredOutput structured;
  structured.schema_type = ReadText(dict["schema_type"], name + ": schema_type");
  if (dict.contains("schema")) {
    structured.schema = ReadSchema(dict["schema"], structured.schema_type, name + ": schema");
  }
  target = std::move(structured);
}

template <typename T>
py::object Write(const T& value) {
  return py::cast(value);
}
py::object Write(const std::optional<int64_t>& value) {
  return value ? py::cast(*value) : py::object(py::none());
}
py::object Write(const std::vector<int32_t>& ids) {
  py::list list;
  for (const int32_t id : ids) list.append(id);
  return list;
}
py::object Write(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(ToStr(text));
  return list;
}
py::object Write(const std::vector<LogitBias>& biases) {
  py::dict dict;
  for (const LogitBias& entry : biases) dict[py::int_(entry.token)] = entry.bias;
  return dict;
}
py::object Write(const std::optional<StructuredOutput>& value) {
  if (!value) return py::none();
  py::dict dict;
  dict["schema_type"] = ToStr(value->schema_type);
  dict["schema"] = ToStr(value->schema);
  return dict;
}

struct Field {
  const char* name;
  const char* doc;
  void (*set)(SamplingParams& params, py::handle value, const char* name);
  py::object (*get)(const SamplingParams& params);
};

template <auto Member>
constexpr Field Of(const char* name, const char* doc) {
  return {name, doc,
          [](SamplingParams& params, py::handle value, const char* field) {
            Read(value, field, params.*Member);
          },
          [](const SamplingParams& params) { return Write(params.*Member); }};
}

using P = SamplingParams;
constexpr Field kFields[] = {
    Of<&P::temperature>("temperature", "0: the likeliest token (greedy); else in (0, 100]."),
    Of<&P::top_p>("top_p", "(0, 1]; 1 keeps every token."),
    Of<&P::top_k>("top_k", ">= 0; 0 keeps every token."),
    Of<&P::min_p>("min_p", "[0, 1]; drops tokens below min_p times the best probability."),
    Of<&P::seq_seed>("seq_seed", "Of the random draws; 0 to 2**64 - 1."),
    Of<&P::repetition_penalty>("repetition_penalty", "[0.01, 100]; over prompt and output."),
    Of<&P::frequency_penalty>("frequency_penalty", "[-2, 2]; for each occurrence in the output."),
    Of<&P::presence_penalty>("presence_penalty", "[-2, 2]; for occurring in the output at all."),
    Of<&P::logit_bias>("logit_bias", "{token id: bias in [-100, 100]}."),
    Of<&P::allowed_token_ids>("allowed_token_ids", "Empty: every token."),
    Of<&P::bad_token_ids>("bad_token_ids", "Never chosen."),
    Of<&P::stop>("stop", "A str or several; the output ends before any of them."),
    Of<&P::stop_token_ids>("stop_token_ids", "End the output like the end token."),
    Of<&P::max_tokens>("max_tokens", "[1, 2**20]; what the context has no room for is cut off."),
    Of<&P::min_tokens>("min_tokens", "Neither end tokens nor stop strings before these."),
    Of<&P::n>("n", "Choices, [1, 128]."),
    Of<&P::logprobs>("logprobs", "None, or 0 (of the chosen token) to 20 (and of the best)."),
    Of<&P::prompt_logprobs>("prompt_logprobs", "The same for every token of the prompt."),
    Of<&P::ignore_eos>("ignore_eos", "The end token does not end the output."),
    Of<&P::so_args>("so_args",
                    "None, or {\"schema_type\": ..., \"schema\": ...}, the form that the answer\n"
                    "must have. schema_type: json_schema (json), json_object, regex, ebnf\n"
                    "(grammar, gbnf) or lark; a JSON schema may be a dict."),
};

void Assign(SamplingParams& params, const py::kwargs& values) {
  for (const auto [key, value] : values) {
    const std::string name = ReadText(key, "a field of SamplingParams");
    const Field* found = nullptr;
    std::string names;
    for (const Field& field : kFields) {
      if (field.name == name) found = &field;
      names += (names.empty() ? "" : ", ") + std::string(field.name);
    }
    if (found == nullptr) Refuse("SamplingParams has no field " + name + "; it has " + names);
    found->set(params, value, found->name);
  }
}

// Fields that differ from the default.
py::dict Changed(const SamplingParams& params) {
  const SamplingParams defaults;
  py::dict dict;
  for (const Field& field : kFields) {
    const py::object value = field.get(params);
    if (!value.equal(field.get(defaults))) dict[field.name] = value;
  }
  return dict;
}

SamplingParams FromDict(const py::dict& values) {
  SamplingParams params;
  Assign(params, py::reinterpret_borrow<py::kwargs>(values));
  return params;
}

std::string Text(const SamplingParams& params) {
  std::string text;
  for (const auto [name, value] : Changed(params)) {
    text += (text.empty() ? "" : ", ") + std::string(py::str(name)) + "=" +
            std::string(py::repr(value));
  }
  return "SamplingParams(" + text + ")";
}

}  // namespace

void BindSamplingParams(py::module_& module) {
  py::class_<SamplingParams> params(
      module, "SamplingParams",
      "How tokens are chosen and when an answer ends: docs/sampling.md.\n\n"
      "Takes any of its attributes as keywords. Types are checked at once, ranges when a request\n"
      "is made with it. Any number of requests may use one.");
  params.def(py::init([](const py::kwargs& values) { return FromDict(values); }))
      .def(
          "replace",
          [](SamplingParams params, const py::kwargs& values) {
            Assign(params, values);
            return params;
          },
          "A copy with other values for some attributes.")
      .def("__repr__", Text)
      .def(
          "__eq__", [](const SamplingParams& a, const SamplingParams& b) { return a == b; },
          py::is_operator())
      .def("__copy__", [](const SamplingParams& self) { return self; })
      .def("__deepcopy__", [](const SamplingParams& self, const py::dict&) { return self; })
      .def(py::pickle([](const SamplingParams& self) { return Changed(self); },
                      [](const py::dict& values) { return FromDict(values); }));
  for (const Field& field : kFields) {
    params.def_property(
        field.name, [&field](const SamplingParams& self) { return field.get(self); },
        [&field](SamplingParams& self, const py::object& value) {
          field.set(self, value, field.name);
        },
        field.doc);
  }
}

}  // namespace deepinfer::python
