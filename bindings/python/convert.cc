#include "python/convert.h"

#include <limits>

#include "python/errors.h"

namespace deepinfer::python {
namespace {

namespace py = pybind11;

constexpr py::ssize_t kMostShownCharacters = 60;

std::string Place(const std::string& name, py::ssize_t index) {
  return name + "[" + std::to_string(index) + "]";
}

std::string Range(const std::string& low, const std::string& high) {
  return " is outside " + low + " to " + high;
}

bool IsNumber(py::handle value) {
  return PyBool_Check(value.ptr()) == 0 && PyNumber_Check(value.ptr()) != 0;
}

py::object ToIndex(py::handle value, const std::string& name) {
  if (PyBool_Check(value.ptr()) != 0 || PyIndex_Check(value.ptr()) == 0) {
    Refuse(name + " " + Shown(value) + " is no integer");
  }
  auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) throw py::error_already_set();
  return index;
}

bool HoldsMessages(const py::list& list) {
  return !list.empty() && py::isinstance<py::dict>(list[0]);
}

}  // namespace

std::string Shown(py::handle value) {
  py::object text = py::reinterpret_steal<py::object>(PyObject_Repr(value.ptr()));
  if (!text) {
    PyErr_Clear();
    return std::string("(a ") + Py_TYPE(value.ptr())->tp_name + ")";
  }
  const bool shortened = PyUnicode_GetLength(text.ptr()) > kMostShownCharacters;
  if (shortened) {
    text = py::reinterpret_steal<py::object>(
        PyUnicode_Substring(text.ptr(), 0, kMostShownCharacters - 3));
  }
  const auto bytes = py::reinterpret_steal<py::bytes>(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  if (!bytes) {
    PyErr_Clear();
    return std::string("(a ") + Py_TYPE(value.ptr())->tp_name + ")";
  }
  return std::string(bytes) + (shortened ? "..." : "");
}

bool ReadFlag(py::handle value, const std::string& name) {
  if (PyBool_Check(value.ptr()) == 0)
    Refuse(name + " " + Shown(value) + " is neither True nor False");
  return value.ptr() == Py_True;
}

int64_t ReadInteger(py::handle value, const std::string& name, int64_t min, int64_t max) {
  const py::object index = ToIndex(value, name);
  int overflow = 0;
  const int64_t result = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || result < min || result > max) {
    Refuse(name + " " + Shown(value) + Range(std::to_string(min), std::to_string(max)));
  }
  return result;
}

uint64_t ReadUnsigned(py::handle value, const std::string& name) {
  const py::object index = ToIndex(value, name);
  const uint64_t result = PyLong_AsUnsignedLongLong(index.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    Refuse(name + " " + Shown(value) +
           Range("0", std::to_string(std::numeric_limits<uint64_t>::max())));
  }
  return result;
}

double ReadReal(py::handle value, const std::string& name) {
  const double result = IsNumber(value) ? PyFloat_AsDouble(value.ptr()) : -1;
  if (!IsNumber(value) || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    Refuse(name + " " + Shown(value) + " is no number that a float holds");
  }
  return result;
}

std::string ReadText(py::handle value, const std::string& name) {
  if (PyUnicode_Check(value.ptr()) == 0) Refuse(name + " " + Shown(value) + " is no str");
  py::ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    Refuse(name + " " + Shown(value) + " has a lone surrogate, which is no character");
  }
  return {text, static_cast<size_t>(size)};
}

py::list ReadList(py::handle value, const std::string& name, const char* of_what) {
  PyObject* object = value.ptr();
  const bool is_list = PySequence_Check(object) != 0 && PyUnicode_Check(object) == 0 &&
                       PyBytes_Check(object) == 0 && PyDict_Check(object) == 0;
  if (!is_list) Refuse(name + " " + Shown(value) + " is no list of " + of_what);
  auto list = py::reinterpret_steal<py::list>(PySequence_List(object));
  if (!list) throw py::error_already_set();
  return list;
}

std::vector<int32_t> ReadTokenIds(py::handle value, const std::string& name) {
  std::vector<int32_t> ids;
  for (const py::handle id : ReadList(value, name, "token ids")) {
    ids.push_back(static_cast<int32_t>(
        ReadInteger(id, Place(name, std::ssize(ids)), 0, std::numeric_limits<int32_t>::max())));
  }
  return ids;
}

std::string ReadJson(py::handle value, const std::string& name) {
  try {
    const py::object text =
        py::module_::import("json").attr("dumps")(value, py::arg("allow_nan") = false);
    return ReadText(text, name);
  } catch (py::error_already_set& error) {
    const bool is_about_value = error.matches(PyExc_TypeError) || error.matches(PyExc_ValueError) ||
                                error.matches(PyExc_RecursionError);
    if (!is_about_value) throw;
    Refuse(name + " " + Shown(value) +
           " cannot be written as JSON: " + ReadText(py::str(error.value()), "the reason"));
  }
}

PromptInput ReadPrompt(py::handle value, const std::string& name) {
  if (PyUnicode_Check(value.ptr()) != 0) return TextPrompt{ReadText(value, name)};
  if (PyDict_Check(value.ptr()) != 0) {
    if (!py::reinterpret_borrow<py::dict>(value).contains("messages")) {
      Refuse(name + " " + Shown(value) + " is no chat: it has no \"messages\"");
    }
    return ChatMessages{ReadJson(value, name)};
  }
  const py::list list = ReadList(value, name, "token ids or messages, nor text or a chat");
  if (!HoldsMessages(list)) return TokensPrompt{ReadTokenIds(list, name)};
  py::dict chat;
  chat["messages"] = list;
  return ChatMessages{ReadJson(chat, name)};
}

py::str ToStr(const std::string& text) {
  auto result = py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), std::ssize(text), "replace"));
  if (!result) throw py::error_already_set();
  return result;
}

}  // namespace deepinfer::python
