// Which DeepInfer this is.
#pragma once

#include <string_view>

namespace deepinfer {

// "MAJOR.MINOR.PATCH" of the library that is linked.
std::string_view Version();

}  // namespace deepinfer
