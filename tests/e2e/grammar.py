"""deepinfer grammar check: what it says about schemas and instances, and how it exits."""

import json

from program import ProgramTest, main, run

PERSON = {"type": "object", "properties": {"name": {"type": "string"},
                                           "born": {"type": "string", "format": "date"}},
          "required": ["name"], "additionalProperties": False}


class Grammar(ProgramTest):
    def test_instances_are_judged_one_by_one(self):
        schema = self.write("schema", json.dumps(PERSON).encode())
        good = self.write("good", b'{"born": "1815-12-10", "name": "Ada"}')
        bad = self.write("bad", b'{"name": 1}')
        done = run("grammar", "check", schema, good, bad)
        self.assertEqual(done.returncode, 1)
        accepted, first, second = done.out.splitlines()
        self.assertTrue(accepted.startswith("accepted: "), accepted)
        self.assertEqual(first, f"{good}: valid")
        self.assertEqual(second, f"{bad}: invalid")
        self.assertEqual(run("grammar", "check", schema, good).returncode, 0)

    def test_lines_of_standard_input_are_instances(self):
        schema = self.write("schema", json.dumps(PERSON).encode())
        lines = '{"name": "A"}\n{"name": "A", "born": "?"}\n[}\n'
        report = json.loads(run("grammar", "check", "--json", schema, "-", stdin=lines).out)
        self.assertEqual([entry["valid"] for entry in report["instances"]], [True, True, False])
        self.assertIs(report["instances"][1]["format"], False)
        report = json.loads(run("grammar", "check", "--json", "--formats", "assert", schema, "-",
                                stdin=lines).out)
        self.assertEqual([entry["valid"] for entry in report["instances"]], [True, False, False])

    def test_a_format_that_is_only_noted_allows_nothing_more_under_not(self):
        for schema, instance in (({"not": {"format": "date"}}, b'"x"'),
                                 ({"oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
                                  b'"1.2.3.4"')):
            file = self.write("schema", json.dumps(schema).encode())
            done = run("grammar", "check", file, self.write("value", instance))
            self.assertTrue(done.out.rstrip().endswith(": invalid"), done.out)

    def test_refusals_name_keyword_and_path(self):
        schema = self.write("schema", b'{"items": {"$ref": "http://x.org/y"}}')
        done = run("grammar", "check", schema)
        self.assertEqual(done.returncode, 1)
        self.assertIn("refused: $ref is not supported at #/items/$ref", done.out)

    def test_a_schema_without_instances_is_accepted(self):
        schema = self.write("schema", b"false")
        done = run("grammar", "check", schema, self.write("value", b"1"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no value is an instance", done.out)

    def test_other_kinds_and_bad_flags(self):
        pattern = self.write("pattern", b"[a-c]+\n")
        done = run("grammar", "check", "--kind", "regex", pattern, self.write("text", b"abc"))
        self.assertEqual(done.returncode, 0, done.out)
        for flags in (["--kind", "yacc"], ["--draft", "3"], ["--formats", "maybe"]):
            self.assertEqual(run("grammar", "check", *flags, pattern).returncode, 2)
        self.assertEqual(run("grammar", "draw", pattern).returncode, 2)


if __name__ == "__main__":
    main()
