// The extension module deepinfer._deepinfer over the public C++ API.
#include <pybind11/pybind11.h>

#include <string>

#include "deepinfer/version.h"
#include "python/bind.h"
#include "python/errors.h"

PYBIND11_MODULE(_deepinfer, module) {
  using namespace deepinfer::python;
  module.doc() = "The engine; see the package deepinfer.";
  module.attr("__version__") = std::string(deepinfer::Version());
  BindErrors(module);
  BindSamplingParams(module);
  BindRecords(module);
  BindLlm(module);
}
