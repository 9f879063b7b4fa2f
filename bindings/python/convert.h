// Arguments from Python. Each function refuses what does not fit with an InvalidArgumentError that
// names the argument ("prompts[3]"), its value and what is allowed. All need the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "deepinfer/request.h"

namespace deepinfer::python {

// repr(value), shortened, for messages. Never fails.
std::string Shown(pybind11::handle value);

bool ReadFlag(pybind11::handle value, const std::string& name);
// Integers, not bool: int and whatever has __index__.
int64_t ReadInteger(pybind11::handle value, const std::string& name, int64_t min = INT64_MIN,
                    int64_t max = INT64_MAX);
uint64_t ReadUnsigned(pybind11::handle value, const std::string& name);
// Numbers, not bool; NaN and infinity included.
double ReadReal(pybind11::handle value, const std::string& name);
// str alone.
std::string ReadText(pybind11::handle value, const std::string& name);
// Sequences but str, bytes and dict.
pybind11::list ReadList(pybind11::handle value, const std::string& name, const char* of_what);
std::vector<int32_t> ReadTokenIds(pybind11::handle value, const std::string& name);
// JSON text of what the json module can write; NaN and infinity are refused.
std::string ReadJson(pybind11::handle value, const std::string& name);

// str: text; a list of ids; a dict with "messages", or a list of messages: a chat.
PromptInput ReadPrompt(pybind11::handle value, const std::string& name);

// Text as str; bytes that are no UTF-8 become U+FFFD.
pybind11::str ToStr(const std::string& text);

}  // namespace deepinfer::python
