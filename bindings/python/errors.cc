#include "python/errors.h"

#include <exception>

#include "deepinfer/error.h"

namespace deepinfer::python {
namespace {

namespace py = pybind11;

// Live as long as the process: exceptions may be thrown until the very end.
PyObject* error_type = nullptr;
PyObject* invalid_argument_type = nullptr;

const char* KindName(Exception::Kind kind) {
  switch (kind) {
    case Exception::Kind::kInvalidArgument:
      return "invalid_argument";
    case Exception::Kind::kNotFound:
      return "not_found";
    case Exception::Kind::kDataLoss:
      return "data_loss";
    case Exception::Kind::kUnsupported:
      return "unsupported";
    case Exception::Kind::kResourceExhausted:
      return "resource_exhausted";
    case Exception::Kind::kIo:
      return "io";
    case Exception::Kind::kCancelled:
      return "cancelled";
    case Exception::Kind::kInternal:
      break;
  }
  return "internal";
}

void Raise(const Exception& exception) {
  const bool invalid = exception.kind() == Exception::Kind::kInvalidArgument;
  PyObject* type = invalid ? invalid_argument_type : error_type;
  const std::string_view message = exception.what();
  // Messages quote file names and values, which need not be UTF-8.
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(message.data(), std::ssize(message), "backslashreplace"));
  if (!text) return;
  const auto error =
      py::reinterpret_steal<py::object>(PyObject_CallFunctionObjArgs(type, text.ptr(), nullptr));
  if (!error) return;
  error.attr("kind") = KindName(exception.kind());
  PyErr_SetObject(type, error.ptr());
}

PyObject* NewType(py::module_& module, const char* name, const char* doc, py::handle bases) {
  const py::object type = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      (std::string("deepinfer.") + name).c_str(), doc, bases.ptr(), nullptr));
  if (!type) throw py::error_already_set();
  module.attr(name) = type;
  return type.inc_ref().ptr();
}

}  // namespace

void BindErrors(py::module_& module) {
  error_type =
      NewType(module, "Error",
              "What the package raises. `kind` is one of invalid_argument, not_found, data_loss,\n"
              "unsupported, resource_exhausted, io, cancelled, internal.",
              PyExc_Exception);
  py::handle(error_type).attr("kind") = "internal";
  invalid_argument_type = NewType(
      module, "InvalidArgumentError",
      "An argument is outside its allowed range: the message names it, its value and the range.",
      py::make_tuple(py::handle(error_type), py::handle(PyExc_ValueError)));
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Exception& exception) {
      Raise(exception);
    }
  });
}

void Refuse(const std::string& message) {
  throw Exception(Exception::Kind::kInvalidArgument, message);
}

}  // namespace deepinfer::python
