// The parts that the module is put together from.
#pragma once

#include <pybind11/pybind11.h>

namespace deepinfer::python {

void BindSamplingParams(pybind11::module_& module);
// Outputs, deltas, statistics: read-only records.
void BindRecords(pybind11::module_& module);
// LLM and RequestHandle, which need both of the above.
void BindLlm(pybind11::module_& module);

}  // namespace deepinfer::python
