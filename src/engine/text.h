// Checks of text that comes from outside.
#pragma once

#include <string_view>

#include "base/result.h"

namespace deepinfer {

// Offset of the first byte that begins no valid UTF-8 sequence (overlong forms, surrogates and
// code points above U+10FFFF are invalid); text.size() when all of it is valid.
size_t FindInvalidUtf8(std::string_view text);

// The error names `what` and the byte's offset and value.
Status RequireUtf8(std::string_view text, std::string_view what);

}  // namespace deepinfer
