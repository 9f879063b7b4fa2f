// A Python function as the callback of a request, called on a thread of the engine.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>

#include "deepinfer/request.h"

namespace deepinfer::python {

// For RequestOptions::on_output of a request with so many choices. Takes the GIL for each call, and
// gives the function up after the last delta. What the function raises goes to sys.unraisablehook
// and ends the request.
std::function<void(const OutputDelta&)> MakeCallback(pybind11::object function, int64_t choices);

// The calling thread runs such a function, so it must not destroy an engine, which waits for it.
bool InCallback();

}  // namespace deepinfer::python
