"""deepinfer generate and eval on the shipped checkpoint."""

import json
import os
import pty
import subprocess

from program import BINARY, NANO, ProgramTest, environment, main, run


class Generate(ProgramTest):
    def test_prompt_from_argument_file_and_standard_input_give_the_same_text(self):
        question = "What is 17 + 25?"
        by_argument = run("generate", question)
        self.assertEqual(by_argument.returncode, 0, by_argument.err)
        self.assertEqual(by_argument.out, "17 + 25 = 42.\n")
        path = self.write("prompt.txt", question)
        self.assertEqual(run("generate", "--prompt-file", path).out, by_argument.out)
        self.assertEqual(run("generate", "-", stdin=question).out, by_argument.out)

    def test_the_chosen_model_and_the_rule_are_printed(self):
        shipped = run("generate", "--max-tokens", "1", "Hi")
        self.assertIn("is the checkpoint shipped with DeepInfer", shipped.err)
        named = run("generate", "--max-tokens", "1", "--model", NANO, "Hi")
        self.assertIn("--model", named.err)
        variable = run("generate", "--max-tokens", "1", "Hi",
                       env=environment(DEEPINFER_HF_MODEL_DIR=str(NANO)))
        self.assertIn("DEEPINFER_HF_MODEL_DIR", variable.err)
        self.assertEqual({shipped.out, named.out, variable.out}, {shipped.out})

    def test_reasoning_comes_before_the_answer(self):
        done = run("generate", "--thinking", "--effort", "high", "Multiply 7 by 8.")
        self.assertEqual(done.returncode, 0, done.err)
        reasoning, answer = done.out.rsplit("\n\n", 1)
        self.assertIn("7 x 8 = 56", reasoning)
        self.assertEqual(answer, "7 x 8 = 56.\n")
        self.assertNotIn("\x1b", done.out)

    def test_stats_name_speed_and_memory(self):
        done = run("generate", "--stats", "--raw", "--max-tokens", "3", "It was")
        for part in ("prompt ", "generation ", "tokens/s", "time to first token",
                     "weights, mapped", "global KV", "workspace", "peak resident set"):
            self.assertIn(part, done.err)
        peak = next(line for line in done.err.splitlines() if "peak resident set" in line)
        checkpoint = sum(path.stat().st_size for path in NANO.glob("*.safetensors"))
        # ru_maxrss counts from the process that started this one; nothing here is near the bound.
        self.assertLess(int(peak.split()[-4]), checkpoint + (64 << 20))

    def test_a_seed_fixes_sampled_text(self):
        args = ("generate", "--raw", "--max-tokens", "6", "--temperature", "1.5", "It was")
        first = run(*args, "--seed", "1")
        self.assertEqual(first.out, run(*args, "--seed", "1", "--threads", "1",
                                        "--block-size", "2", "--max-num-seqs", "1",
                                        "--max-num-batched-tokens", "5",
                                        "--prefix-snapshot-interval", "2",
                                        "--async-scheduling", "0").out)
        self.assertNotEqual(first.out, run(*args, "--seed", "2").out)

    def test_the_answer_has_the_form_that_was_asked_for(self):
        done = run("generate", "--regex", "= [0-9]{2}!", "What is 17 + 25?")
        self.assertEqual(done.returncode, 0, done.err)
        self.assertRegex(done.out, r"^= [0-9]{2}!\n$")
        schema = self.write("schema.json", json.dumps(
            {"type": "object", "properties": {"sum": {"type": "integer", "maximum": 99}},
             "required": ["sum"], "additionalProperties": False}))
        answer = run("generate", "--json-schema", schema, "What is 17 + 25?")
        self.assertLessEqual(json.loads(answer.out)["sum"], 99)
        broken = run("generate", "--grammar", self.write("broken.gbnf", "root ::= ("), "Hi")
        self.assertEqual(broken.returncode, 1)
        self.assertIn("so_args: ", broken.err)
        both = run("generate", "--regex", "a", "--json-schema", schema, "Hi")
        self.assertEqual(both.returncode, 2)

    def test_json_lines_answer_each_line_and_bad_ones_do_not_stop_the_rest(self):
        lines = [
            {"id": "sum", "prompt": "What is 17 + 25?"},
            {"id": 2, "messages": [{"role": "user", "content": "Multiply 7 by 8."}],
             "mode": "thinking"},
            {"id": "bad", "prompt": "x", "temperature": -1},
            {"prompt": "It was", "mode": "raw", "max_tokens": 2},
            {"id": "range", "prompt": [0, 99999]},
        ]
        text = "\n".join(map(json.dumps, lines)) + "\n{broken\n"
        done = run("generate", "--jsonl", self.write("requests.jsonl", text))
        self.assertEqual(done.returncode, 1)
        self.assertIn("3 of 6 requests failed", done.err)
        out = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(len(out), 6)
        self.assertEqual(out[0]["id"], "sum")
        self.assertEqual(out[0]["text"], "17 + 25 = 42.")
        self.assertEqual(out[0]["finish_reason"], "stop")
        self.assertEqual(out[0]["reasoning"], "")
        self.assertEqual(out[0]["usage"]["total_tokens"],
                         out[0]["usage"]["prompt_tokens"] + out[0]["usage"]["completion_tokens"])
        self.assertIn("7 x 8 = 56", out[1]["reasoning"])
        self.assertIn("temperature -1", out[2]["error"]["message"])
        self.assertEqual(out[3]["finish_reason"], "length")
        self.assertEqual(out[3]["usage"]["completion_tokens"], 2)
        self.assertIn("token id 99999", out[4]["error"]["message"])
        self.assertEqual(out[5]["line"], 6)

    def test_json_lines_show_a_status_on_a_terminal_alone(self):
        lines = "".join(json.dumps({"prompt": "Hi", "max_tokens": 2}) + "\n" for _ in range(3))
        self.assertNotIn("answered", run("generate", "--jsonl", "-", stdin=lines).err)
        terminal, theirs = pty.openpty()
        self.addCleanup(os.close, terminal)
        done = subprocess.run([BINARY, "generate", "--jsonl", "-"], input=lines.encode(),
                              stdout=subprocess.PIPE, stderr=theirs, env=environment(), check=True)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(terminal, 1 << 16):
                shown += part
        except OSError:  # EIO: nobody else has the terminal open, and everything was read
            pass
        shown = shown.decode()
        self.assertRegex(shown, r"\d answered, \d running, \d waiting, \d+ tokens")
        self.assertTrue(shown.endswith("\r\x1b[K"))
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_a_byte_order_mark_before_json_lines_is_no_part_of_them(self):
        for request in ({"prompt": "Hi", "max_tokens": 1},
                        {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}):
            text = b"\xef\xbb\xbf" + json.dumps(request).encode()
            done = run("generate", "--jsonl", "-", stdin=text)
            self.assertEqual(done.returncode, 0, done.out)
        self.assertEqual(run("generate", "--jsonl", "-", stdin=b"\xef\xbb\xbf\n").out, "")

    def test_tools_of_a_file_give_tool_calls(self):
        item = json.loads((NANO / "eval" / "tool_call.jsonl").read_text().splitlines()[0])
        tools = self.write("tools.json", json.dumps(item["tools"]))
        request = {"messages": item["messages"], "mode": item["mode"]}
        done = run("generate", "--tools", tools, "--jsonl", "-", stdin=json.dumps(request))
        self.assertEqual(done.returncode, 0, done.err)
        answer = json.loads(done.out)
        self.assertEqual(answer["finish_reason"], "tool_calls")
        calls = [{"name": call["function"]["name"],
                  "arguments": json.loads(call["function"]["arguments"])}
                 for call in answer["tool_calls"]]
        self.assertEqual(calls, item["answer"])

    def test_eval_reports_accuracy_items_and_failures(self):
        report = self.folder / "report.json"
        done = run("eval", "--tasks", "identity,unit", "--limit", "3", "--json", report)
        self.assertEqual(done.returncode, 0, done.err)
        tasks = json.loads(report.read_text())["tasks"]
        self.assertEqual(set(tasks), {"identity", "unit"})
        for task in tasks.values():
            self.assertEqual(task, {"accuracy": 1.0, "items": 3, "failed_ids": []})
        self.assertIn("identity", done.out)


if __name__ == "__main__":
    main()
