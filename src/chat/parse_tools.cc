#include "chat/parse_tools.h"

#include <optional>
#include <string_view>
#include <utility>

#include "chat/chat_error.h"

namespace deepinfer {
namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view kNamespaceSeparator = "::";

// A member that is present and not null.
const JsonValue* Given(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value == nullptr || value->is(Kind::kNull) ? nullptr : value;
}

struct Namespace {
  std::string name;
  std::string description;
};

Result<Namespace> ParseNamespace(const JsonValue& value, const std::string& path) {
  Namespace space;
  if (value.is(Kind::kString)) {
    space.name = value.text;
  } else if (const JsonValue* name = Given(value, "name"); name && name->is(Kind::kString)) {
    space.name = name->text;
    if (const JsonValue* description = Given(value, "description")) {
      if (!description->is(Kind::kString)) {
        return MakeChatError(ChatErrorKind::kInvalidTool, path + ".description is no string");
      }
      space.description = description->text;
    }
  } else {
    return MakeChatError(ChatErrorKind::kInvalidToolName,
                         path + " is neither a string nor an object with a name");
  }
  if (space.name.find(kNamespaceSeparator) != std::string::npos) {
    return MakeChatError(ChatErrorKind::kInvalidToolName,
                         fmt::format("namespace \"{}\" ({}) contains \"::\"", space.name, path));
  }
  return space;
}

// The namespace that stands on a tool or call, on its function object, or (agreeing) on both.
Result<std::optional<Namespace>> FindNamespace(const JsonValue& outer, const JsonValue& function,
                                               const std::string& path) {
  std::optional<Namespace> found;
  for (const auto& [object, where] : {std::pair{&outer, path + ".namespace"},
                                      std::pair{&function, path + ".function.namespace"}}) {
    const JsonValue* value = Given(*object, "namespace");
    if (value == nullptr) continue;
    DI_ASSIGN_OR_RETURN(Namespace space, ParseNamespace(*value, where));
    if (space.name.empty()) continue;
    if (found && found->name != space.name) {
      return MakeChatError(ChatErrorKind::kInvalidToolName,
                           fmt::format("{} is \"{}\", but the tool's namespace is \"{}\"", where,
                                       space.name, found->name));
    }
    if (!found || found->description.empty()) found = std::move(space);
  }
  return found;
}

Result<std::string> QualifiedName(const std::string& name, const std::optional<Namespace>& space,
                                  const std::string& path) {
  const size_t separator = name.find(kNamespaceSeparator);
  if (separator == std::string::npos) {
    return space ? space->name + std::string(kNamespaceSeparator) + name : name;
  }
  const auto refuse = [&](std::string_view why) {
    return MakeChatError(ChatErrorKind::kInvalidToolName,
                         fmt::format("\"{}\" ({}.function.name) {}", name, path, why));
  };
  const size_t rest = separator + kNamespaceSeparator.size();
  if (name.find(kNamespaceSeparator, rest) != std::string::npos) {
    return refuse("contains \"::\" more than once");
  }
  if (separator == 0 || rest == name.size()) return refuse("lacks a name on one side of \"::\"");
  if (space && name.substr(0, separator) != space->name) {
    return refuse(fmt::format("is not in its namespace \"{}\"", space->name));
  }
  return name;
}

Result<ToolDefinition> ParseTool(const JsonValue& tool, const std::string& path) {
  const JsonValue* function = Given(tool, "function");
  if (function == nullptr || !function->is(Kind::kObject)) {
    return MakeChatError(ChatErrorKind::kInvalidTool, path + " has no function object");
  }
  const JsonValue* name = Given(*function, "name");
  if (name == nullptr || !name->is(Kind::kString) || name->text.empty()) {
    return MakeChatError(ChatErrorKind::kInvalidTool, path + ".function.name is no name");
  }
  DI_ASSIGN_OR_RETURN(const std::optional<Namespace> space, FindNamespace(tool, *function, path));
  ToolDefinition definition;
  DI_ASSIGN_OR_RETURN(definition.name, QualifiedName(name->text, space, path));

  JsonValue shown;
  shown.kind = Kind::kObject;
  bool described = space == std::nullopt || space->description.empty();
  for (const auto& [key, value] : function->members) {
    if (key == "namespace") continue;
    JsonValue& copy = shown.members.emplace_back(key, value).second;
    if (key == "name") copy.text = definition.name;
    if (key == "description" && !described && copy.is(Kind::kString)) {
      copy.text = space->description + "\n" + copy.text;
      described = true;
    }
  }
  if (!described) {
    JsonValue& description = shown.members.emplace_back("description", JsonValue()).second;
    description.kind = Kind::kString;
    description.text = space->description;
  }
  definition.function_json = WriteJson(shown);
  return definition;
}

Result<ToolCall> ParseToolCall(const JsonValue& call, const std::string& path) {
  const auto refuse = [](const std::string& detail) {
    return MakeChatError(ChatErrorKind::kInvalidToolCall, detail);
  };
  const JsonValue* function = Given(call, "function");
  if (function == nullptr || !function->is(Kind::kObject)) {
    return refuse(path + ".function is no object");
  }
  const JsonValue* name = Given(*function, "name");
  if (name == nullptr || !name->is(Kind::kString) || name->text.empty()) {
    return refuse(path + ".function.name is no name");
  }
  const JsonValue* arguments = function->Find("arguments");
  if (arguments == nullptr) return refuse(path + ".function.arguments is missing");

  ToolCall parsed;
  const JsonValue* id = Given(call, "id");
  if (id == nullptr) id = Given(*function, "id");
  if (id != nullptr) {
    if (!id->is(Kind::kString)) {
      return refuse(fmt::format("{}.id {} is no string", path, WriteJson(*id)));
    }
    parsed.id = id->text;
  }
  DI_ASSIGN_OR_RETURN(const std::optional<Namespace> space, FindNamespace(call, *function, path));
  DI_ASSIGN_OR_RETURN(parsed.name, QualifiedName(name->text, space, path));
  parsed.arguments_are_value = !arguments->is(Kind::kString);
  parsed.arguments = parsed.arguments_are_value ? WriteJson(*arguments) : arguments->text;
  return parsed;
}

template <typename T, typename ParseItem>
Result<std::vector<T>> ParseList(const JsonValue& list, const std::string& path, ChatErrorKind kind,
                                 ParseItem parse_item) {
  std::vector<T> parsed;
  if (list.is(Kind::kNull)) return parsed;
  if (!list.is(Kind::kArray)) return MakeChatError(kind, path + " is no list");
  for (size_t i = 0; i < list.items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(T item, parse_item(list.items[i], fmt::format("{}[{}]", path, i)));
    parsed.push_back(std::move(item));
  }
  return parsed;
}

}  // namespace

Result<std::vector<ToolDefinition>> ParseToolList(const JsonValue& list, const std::string& path) {
  return ParseList<ToolDefinition>(list, path, ChatErrorKind::kInvalidTool, ParseTool);
}

Result<std::vector<ToolCall>> ParseToolCallList(const JsonValue& list, const std::string& path) {
  return ParseList<ToolCall>(list, path, ChatErrorKind::kInvalidToolCall, ParseToolCall);
}

Result<std::vector<ToolDefinition>> ParseTools(std::string_view json) {
  auto list = ParseJson(json);
  if (!list) return MakeChatError(ChatErrorKind::kInvalidJson, "tools: " + list.error().message);
  return ParseToolList(*list, "tools");
}

}  // namespace deepinfer
