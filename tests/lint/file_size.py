#!/usr/bin/env python3
"""Files have at most 800 lines and functions 120; from 400 and 60 on there is a warning."""

import ast
import os
import re
import sys

import common

FILE_SOFT, FILE_HARD = 400, 800
FUNCTION_SOFT, FUNCTION_HARD = 60, 120
ALLOW_LIST = "tests/lint/file_size_allow.txt"

RAW_STRING = re.compile(r'R"([^()\\ ]{0,16})\((.*?)\)\1"', re.DOTALL)
COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
SCOPE = re.compile(r"^\s*(?:inline\s+)?(?:namespace|class|struct|union|enum|extern\s*\"\"$)")
TEMPLATE_HEAD = re.compile(r"^\s*template\s*<[^{}]*?>\s*(?=\w|\[)")
FUNCTION_NAME = re.compile(r"([~\w]+(?:::[~\w]+)*|operator\s*\S+?)\s*\(")


def blank(match):
    """The same number of lines, without content that could look like code."""
    text = match.group(0)
    return ("" if text.startswith("/") else '""') + "\n" * text.count("\n")


def cpp_functions(text):
    """(name, first line, lines) of each function, from its head to its closing brace."""
    text = COMMENT_OR_LITERAL.sub(blank, RAW_STRING.sub(blank, text))
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), text,
                  flags=re.MULTILINE)
    functions = []
    # Depth at which a body opened that holds no further functions: a function's own, or an
    # initialiser's (then name is None).
    depth, body_depth = 0, None
    name, first_line = None, 0
    statement, statement_line, line = "", 1, 1
    for character in text:
        if character == "\n":
            line += 1
        if character == "{":
            head = TEMPLATE_HEAD.sub("", statement)
            if body_depth is None and not SCOPE.match(head):
                body_depth, name, first_line = depth, function_name(head), statement_line
            depth += 1
        elif character == "}":
            depth -= 1
            if body_depth == depth:
                if name:
                    functions.append((name, first_line, line - first_line + 1))
                body_depth = None
        if character in "{};":
            statement = ""
        elif statement or not character.isspace():
            if not statement:
                statement_line = line
            statement += character
    return functions


def function_name(head):
    """The name in a function's head; None when it is something else, such as an initialiser."""
    match = FUNCTION_NAME.search(head)
    before_parenthesis = head.split("(")[0]
    if not match or ("=" in before_parenthesis and "operator" not in before_parenthesis):
        return None
    return match.group(1)


def python_functions(text):
    return [(node.name, node.lineno, node.end_lineno - node.lineno + 1)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def read_allow_list(text):
    """{"path" or "path:function": reason}; a line is the key, spaces, and the reason."""
    allowed = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        key, _, reason = line.partition(" ")
        allowed[key] = reason.strip()
    return allowed


def check_file(path, text, allowed, used):
    """(problems, warnings) of one file; notes in `used` the allow-list keys that were needed."""
    problems, warnings = [], []

    def judge(key, what, lines, soft, hard):
        message = f"{key}: {what} has {lines} lines; the limit is {hard}"
        if lines <= soft:
            return
        if lines > hard and key not in allowed:
            problems.append(message)
            return
        if lines > hard:
            used.add(key)
        warnings.append(f"{key}: {what} has {lines} lines, more than {soft}")

    judge(path, "file", len(text.splitlines()), FILE_SOFT, FILE_HARD)
    functions = python_functions(text) if path.endswith(".py") else cpp_functions(text)
    for name, _, lines in functions:
        judge(f"{path}:{name}", "function", lines, FUNCTION_SOFT, FUNCTION_HARD)
    return problems, warnings


def check(root):
    allowed = {}
    if os.path.isfile(os.path.join(root, ALLOW_LIST)):
        allowed = read_allow_list(common.read(ALLOW_LIST, root))
    problems = [f"{ALLOW_LIST}: {key} has no reason" for key, reason in allowed.items()
                if not reason]
    warnings, used = [], set()
    paths = [path for path in common.source_files(root) if path.endswith((".h", ".cc", ".py"))]
    for path in paths:
        more_problems, more_warnings = check_file(path, common.read(path, root), allowed, used)
        problems += more_problems
        warnings += more_warnings
    problems += [f"{ALLOW_LIST}: {key} is not needed" for key in allowed if key not in used]
    return problems, warnings, len(paths)


if __name__ == "__main__":
    found, hints, count = check(sys.argv[1] if len(sys.argv) > 1 else common.ROOT)
    for hint in hints:
        print("warning:", hint)
    common.finish("file_size", found, f"{count} files, {len(hints)} warnings")
