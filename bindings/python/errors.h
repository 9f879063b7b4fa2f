// Exceptions: C++ ones become the package's Error, whose `kind` tells them apart.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace deepinfer::python {

// Adds Error and InvalidArgumentError to the module and translates Exception to them.
void BindErrors(pybind11::module_& module);

// Throws an Exception of kind kInvalidArgument. The message names the argument, its value and what
// is allowed.
[[noreturn]] void Refuse(const std::string& message);

}  // namespace deepinfer::python
