#include "python/callback.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "python/convert.h"

namespace deepinfer::python {
namespace {

namespace py = pybind11;

thread_local int callback_depth = 0;

// Takes the GIL on whatever thread this is.
class CallbackScope {
 public:
  CallbackScope() { ++callback_depth; }
  ~CallbackScope() { --callback_depth; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  py::gil_scoped_acquire gil_;
};

class Callback {
 public:
  Callback(py::object function, int64_t choices)
      : function_(std::move(function)), open_choices_(choices) {}
  // Without the GIL, unlike its making.
  ~Callback() {
    if (!function_) return;
    const CallbackScope scope;
    function_ = py::object();
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  void Call(const OutputDelta& delta) {
    const CallbackScope scope;
    try {
      function_(delta);
    } catch (py::error_already_set& error) {
      std::string message = std::string(py::str(error.type().attr("__name__")));
      message += ": " + Reason(error.value());
      error.restore();
      PyErr_WriteUnraisable(function_.ptr());
      function_ = py::object();
      throw std::runtime_error(message);
    }
    if (delta.finish_reason && --open_choices_ == 0) function_ = py::object();
  }

 private:
  // str(value), which may itself raise.
  static std::string Reason(const py::object& value) {
    const auto text = py::reinterpret_steal<py::object>(PyObject_Str(value.ptr()));
    if (text) return ReadText(text, "the reason");
    PyErr_Clear();
    return Shown(value);
  }

  py::object function_;
  int64_t open_choices_;
};

}  // namespace

std::function<void(const OutputDelta&)> MakeCallback(py::object function, int64_t choices) {
  auto callback = std::make_shared<Callback>(std::move(function), choices);
  return [callback = std::move(callback)](const OutputDelta& delta) { callback->Call(delta); };
}

bool InCallback() { return callback_depth > 0; }

}  // namespace deepinfer::python
