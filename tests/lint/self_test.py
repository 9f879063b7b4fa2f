#!/usr/bin/env python3
"""Every lint fails on a bad sample and passes a good one."""

import os
import shutil
import subprocess
import tempfile
import unittest

import common
import file_size
import forbidden_words
import formatting
import include_dag
import option_docs
import target_symbols
import tracked_size


class Tree(unittest.TestCase):
    """A folder of sample files outside any git checkout."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


class IncludeDag(Tree):
    def problems(self):
        return include_dag.check(self.root)[0]

    def test_an_arrow_of_the_table_passes(self):
        self.write("src/base/result.h", "#include <string>\n")
        self.write("src/engine/engine.cc", '#include "base/result.h"\n')
        self.assertEqual(self.problems(), [])

    def test_a_reversed_arrow_fails(self):
        self.write("src/engine/engine.h", "")
        self.write("src/base/result.cc", '#include "engine/engine.h"\n')
        self.assertIn("base may not include engine", self.problems()[0])

    def test_bindings_that_look_behind_the_public_headers_fail(self):
        self.write("include/deepinfer/llm.h", "")
        self.write("src/base/result.h", "")
        self.write("bindings/python/llm.cc", '#include "deepinfer/llm.h"\n')
        self.assertEqual(self.problems(), [])
        self.write("bindings/python/llm.cc", '#include "base/result.h"\n')
        self.assertEqual(self.problems(),
                         ['bindings/python/llm.cc: python may not include base ("base/result.h")'])

    def test_kernel_families_do_not_see_each_other_through_the_longest_name(self):
        self.write("src/kernels/reference/gemm.h", "")
        self.write("src/model/v41/moe.cc", '  #  include "kernels/reference/gemm.h"\n')
        self.assertIn("model/v41 may not include kernels/reference", self.problems()[0])

    def test_a_folder_without_a_row_fails(self):
        self.write("src/utilities/helper.cc", "")
        self.assertIn("utilities has no row", self.problems()[0])

    def test_a_path_that_does_not_start_at_src_fails(self):
        self.write("src/base/result.h", "")
        self.write("src/base/file.cc", '#include "result.h"\n')
        self.assertIn('"result.h" is no file under src/', self.problems()[0])

    def test_third_party_types_in_a_header_fail(self):
        self.write("src/chat/prompt.h", "#include <nlohmann/json.hpp>\n")
        self.assertIn("belongs in .cc files only", self.problems()[0])

    def test_file_access_outside_its_folders_fails(self):
        self.write("src/chat/prompt.cc", "#include <fstream>\n")
        self.assertIn("<fstream> is for base, loader only", self.problems()[0])

    def test_a_cycle_is_found_and_the_table_has_none(self):
        self.assertEqual(include_dag.find_cycle({"a": ["b"], "b": ["c"], "c": ["a"]}),
                         ["a", "b", "c", "a"])
        self.assertIsNone(include_dag.find_cycle({"a": ["b", "c"], "b": ["c"]}))
        self.assertIsNone(include_dag.find_cycle(include_dag.ARROWS))


class FileSize(Tree):
    def test_function_lengths_are_seen_through_all_that_has_braces(self):
        text = "\n".join([
            "namespace a {", "struct S {", "  int Get() const { return 1; }", "  int x{3};", "};",
            "const int kTable[] = {1, 2};", 'const char* kText = R"({)";  // {', "",
            "template <typename T>", "Result<T> S::Run(int a,", "                 int b) {",
            "  if (a) {", "    auto f = [](int c) {", "      return c;", "    };", "  }",
            "  char d = '{';", "}", "}"])
        self.assertEqual(file_size.cpp_functions(text), [("Get", 3, 1), ("S::Run", 9, 10)])

    def test_a_function_above_the_hard_limit_fails(self):
        self.write("src/a.cc", "void F() {\n" + "  G();\n" * 119 + "}\n")
        self.assertIn("src/a.cc:F: function has 121 lines", file_size.check(self.root)[0][0])
        self.write("src/a.cc", "void F() {\n" + "  G();\n" * 118 + "}\n")
        problems, warnings, _ = file_size.check(self.root)
        self.assertEqual((problems, len(warnings)), ([], 1))

    def test_a_long_python_function_fails(self):
        self.write("tools/a.py", "def f():\n" + "    g()\n" * 120)
        self.assertIn("tools/a.py:f", file_size.check(self.root)[0][0])

    def test_a_file_above_the_hard_limit_fails(self):
        self.write("src/a.h", "\n" * 801)
        self.assertIn("src/a.h: file has 801 lines", file_size.check(self.root)[0][0])
        self.write("src/a.h", "\n" * 800)
        self.assertEqual(file_size.check(self.root)[0], [])

    def test_the_allow_list_needs_a_reason_and_a_use(self):
        self.write("src/a.h", "\n" * 801)
        self.write(file_size.ALLOW_LIST, "src/a.h a table of constants\n")
        self.assertEqual(file_size.check(self.root)[0], [])
        self.write(file_size.ALLOW_LIST, "src/a.h\n")
        self.assertIn("src/a.h has no reason", file_size.check(self.root)[0][0])
        self.write(file_size.ALLOW_LIST, "src/a.h big\nsrc/b.h gone\n")
        self.assertIn("src/b.h is not needed", file_size.check(self.root)[0][0])


class Others(Tree):
    def test_forbidden_words_fail_alone_but_not_inside_words(self):
        for word in forbidden_words.WORDS:
            self.assertEqual(forbidden_words.check_text("a.cc", f"// {word}: later"),
                             [f"a.cc:1: {word}"])
            self.assertEqual(forbidden_words.check_text("a.cc", f"k{word}_A {word}S"), [])

    def test_forbidden_words_are_looked_for_in_the_tree(self):
        self.write("src/a.cc", "int x;\n// " + forbidden_words.WORDS[0] + "\n")
        self.assertIn("src/a.cc:2", forbidden_words.check(self.root)[0][0])

    def test_tracked_size_above_the_limit_fails_and_names_the_largest(self):
        if common.tracked_files() is None:
            self.skipTest("no git checkout")
        problems, total, _ = tracked_size.check(common.ROOT, limit_bytes=1000)
        self.assertIn("the limit is 1000", problems[0])
        self.assertGreater(total, 1000)
        self.assertIsNone(tracked_size.check(self.root)[0])

    def test_unformatted_sources_fail(self):
        self.write("src/a.cc", "int  x ;\n")
        self.write("src/b.cc", "int x;\n")
        problems, _ = formatting.check(self.root)
        if problems is None:
            self.skipTest("no clang-format")
        self.assertEqual(problems, ["src/a.cc: not formatted; run `make format`"])

    def test_code_that_targets_share_fails(self):
        own = "a.o:00 W void deepinfer::kernels::cpu::avx2::Run<int>(int)\na.o:00 T main\n"
        self.assertEqual(target_symbols.check_listing("avx2", own), [])
        self.assertEqual(len(target_symbols.check_listing("scalar", own)), 1)
        self.assertIn("GemmItem::rows", target_symbols.check_listing(
            "avx2", "a.o:00 W deepinfer::kernels::GemmItem::rows() const\n")[0])
        for kind in "Vu":
            self.assertEqual(len(target_symbols.check_listing("avx2", f"a.o:00 {kind} x\n")), 1)
        personality = "a.o:00 V DW.ref.__gxx_personality_v0\n"
        self.assertEqual(target_symbols.check_listing("avx2", personality), [])

    def test_weak_code_is_found_in_an_object(self):
        if shutil.which("nm") is None or shutil.which("c++") is None:
            self.skipTest("no nm or no compiler")
        self.write("a.cc", "inline int F() { return 1; }\nint G() { return F(); }\n")
        source, compiled = os.path.join(self.root, "a.cc"), os.path.join(self.root, "a.o")
        subprocess.run(["c++", "-O0", "-c", source, "-o", compiled], check=True)
        problems, count = target_symbols.check({"avx2": [compiled]})
        self.assertEqual(count, 1)
        self.assertIn("F()", problems[0])

    def test_an_outdated_options_document_fails(self):
        self.assertEqual(option_docs.check_document("a", "a"), [])
        self.assertEqual(len(option_docs.check_document("a", "b")), 1)

    def test_an_option_that_nothing_reads_fails(self):
        document = "| `--top-p X` | ...\n| `--top-k N` | ...\n"
        sources = {"src/cli/a.cc": "f(resolved.values.top_p);",
                   "src/cli/b.cc": "f(other.top_k);",
                   "src/config/c.cc": "f(options.top_k);"}
        self.assertEqual(option_docs.check_reads(document, sources),
                         ["option top-k: nothing in src/ reads Options::top_k"])

    def test_a_variable_that_is_not_documented_fails(self):
        sources = {"src/a.cc": 'getenv("DEEPINFER_A"); getenv("DEEPINFER_B"); "DEEPINFER_";'}
        self.assertEqual(option_docs.check_variables("| `DEEPINFER_A` |", sources),
                         ["src/a.cc: DEEPINFER_B is not in docs/options.md"])


if __name__ == "__main__":
    unittest.main()
