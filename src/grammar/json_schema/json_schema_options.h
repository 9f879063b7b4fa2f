// How a JSON Schema is read, and what texts its grammar writes.
#pragma once

#include "grammar/json_schema/schema_document.h"

namespace deepinfer::grammar {

struct JsonSchemaOptions {
  // kFree: what printers of JSON write: after '{' '[' ',' and before '}' ']' nothing, a blank, or a
  // line break and up to 32 blanks or tabs; after ':' nothing or a blank. kCompact: none.
  enum class Whitespace { kFree, kCompact };
  // kAny: members in any order. kDeclared: those of "properties" in its order, then the others.
  enum class KeyOrder { kAny, kDeclared };
  // kAssert: strings match their "format"; the standard formats that cannot be asserted are
  // refused, unknown ones mean nothing. kAnnotate: no format means anything, the standard's
  // default.
  enum class Formats { kAssert, kAnnotate };

  Whitespace whitespace = Whitespace::kFree;
  KeyOrder key_order = KeyOrder::kAny;
  Formats formats = Formats::kAssert;
  SchemaDraft draft = SchemaDraft::kAny;  // of schemas without "$schema"
};

}  // namespace deepinfer::grammar
