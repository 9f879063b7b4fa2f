"""Input that cannot be served: an error that names it, the right exit code, never a crash."""

import json

from program import NANO, ProgramTest, environment, main, run


class BadPrompts(ProgramTest):
    def test_empty_prompts(self):
        self.expect_error(run("generate", ""), 1, "the prompt is empty")
        self.expect_error(run("generate", "-"), 1, "the prompt is empty")
        self.expect_error(run("generate", "--raw", ""), 1, "the prompt is empty")
        self.expect_error(run("generate", "--prompt-file", self.write("p", "")), 1,
                          "the prompt is empty")

    def test_a_prompt_longer_than_the_context(self):
        path = self.write("long.txt", "1 2 3 4 5 6 7 8 " * 2000)
        self.expect_error(run("generate", "--prompt-file", path), 1, "context of 8192 tokens")

    def test_invalid_utf8_names_the_offset(self):
        self.expect_error(run("generate", b"ab\xff"), 1, "not valid UTF-8", "offset 2")
        self.expect_error(run("generate", "--raw", b"ab\xc3"), 1, "offset 2")
        self.expect_error(run("generate", "--system", b"\xff", "x"), 1, "--system", "offset 0")

    def test_no_prompt_or_two_are_usage_errors(self):
        self.expect_error(run("generate"), 2, "no prompt")
        self.expect_error(run("generate", "x", "--prompt-file", "y"), 2, "more than one")
        self.expect_error(run("generate", "--raw", "--thinking", "x"), 2, "--raw")
        self.expect_error(run("generate", "--prompt-file", self.folder / "absent"), 1, "absent")

    def test_token_ids_out_of_range(self):
        self.expect_error(run("tokenize", "--decode", "5,8192"), 1, "8192", "0 to 8191")
        self.expect_error(run("tokenize", "--decode", "-1"), 1, "-1")

    def test_efforts_out_of_range(self):
        for effort in ("0", "101", "huge", "75.0", ""):
            self.expect_error(run("generate", "--thinking", "--effort", effort, "x"), 2,
                              f"--effort {effort}")
        request = {"messages": [{"role": "user", "content": "x"}], "reasoning_effort": 101}
        self.expect_error(run("encode", "-", stdin=json.dumps(request)), 1, "101")

    def test_a_tool_result_nobody_called_for(self):
        request = {"messages": [{"role": "user", "content": "x"},
                                {"role": "assistant", "content": "y"},
                                {"role": "tool", "tool_call_id": "call_9", "content": "z"}]}
        self.expect_error(run("encode", "-", stdin=json.dumps(request)), 1, "call_9")
        done = run("generate", "--jsonl", "-", stdin=json.dumps(request))
        self.assertEqual(done.returncode, 1)
        self.assertIn("call_9", json.loads(done.out)["error"]["message"])

    def test_a_json_line_beyond_the_limit_is_an_error_and_the_rest_is_answered(self):
        request = json.dumps({"prompt": "It was", "mode": "raw", "max_tokens": 1}).encode()
        text = b"x" * ((64 << 20) + 1) + b"\n" + request
        for done in (run("generate", "--jsonl", "-", stdin=text),
                     run("generate", "--jsonl", self.write("requests.jsonl", text))):
            self.assertEqual(done.returncode, 1)
            out = [json.loads(line) for line in done.out.splitlines()]
            self.assertIn(f"more than the allowed {64 << 20} bytes", out[0]["error"]["message"])
            self.assertEqual(out[0]["line"], 1)
            self.assertEqual(out[1]["finish_reason"], "length")


class BadModels(ProgramTest):
    def test_a_file_a_missing_folder_and_a_folder_without_checkpoint(self):
        self.expect_error(run("generate", "--model", NANO / "config.json", "x"), 1, "config.json",
                          "file")
        self.expect_error(run("generate", "--model", self.folder / "none", "x"), 1, "none")
        self.expect_error(run("generate", "--model", self.folder, "x"), 1, "config.json")
        self.expect_error(run("generate", "x",
                              env=environment(DEEPINFER_HF_MODEL_DIR=str(NANO / "config.json"))),
                          1, "DEEPINFER_HF_MODEL_DIR")

    def copy_of_nano(self, leave_out=()):
        for path in NANO.iterdir():
            if path.is_file() and path.name not in leave_out:
                (self.folder / path.name).symlink_to(path)
        return self.folder

    def test_a_different_architecture(self):
        folder = self.copy_of_nano(leave_out=("config.json",))
        config = json.loads((NANO / "config.json").read_text())
        config["architectures"] = ["LlamaForCausalLM"]
        self.write("config.json", json.dumps(config))
        self.expect_error(run("generate", "--model", folder, "x"), 1, "LlamaForCausalLM")

    def test_a_missing_shard(self):
        shard = "model-00002-of-00004.safetensors"
        folder = self.copy_of_nano(leave_out=(shard,))
        self.expect_error(run("generate", "--model", folder, "x"), 1, shard)


class BadOptions(ProgramTest):
    def test_values_outside_their_range_name_option_and_range(self):
        for name, value in (("temperature", "-1"), ("temperature", "nan"), ("top-p", "0"),
                            ("top-p", "1.5"), ("top-k", "-1"), ("min-p", "2"), ("seed", "-1"),
                            ("max-tokens", "0"), ("threads", "two"), ("prefill-mode", "fast")):
            self.expect_error(run("generate", f"--{name}={value}", "x"), 2, name, value)
        self.expect_error(run("generate", "x", env=environment(DEEPINFER_TOP_P="7")), 2,
                          "DEEPINFER_TOP_P", "7")

    def test_kept_tokens_below_the_window_give_the_reason(self):
        self.expect_error(run("generate", "--prefill-mode", "compact", "--prefill-keep-tokens",
                              "139", "x"), 1, "139", "140", "sliding window")

    def test_of_a_flag_given_twice_the_last_counts(self):
        args = ("generate", "--raw", "--stats", "--stats", "--max-tokens", "7", "x")
        done = run(*args, "--max-tokens", "1", "--model", self.folder / "none", "--model", NANO)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("cut off after --max-tokens 1\n", done.err)
        self.expect_error(run("eval", "--limit", "1", "--limit", "0"), 2, "0", "1 to")
        self.expect_error(run("generate", "x", "y"), 2, "y")

    def test_lists_that_hold_nothing_are_usage_errors(self):
        for ids in ("", ",", "[]", " , "):
            self.expect_error(run("tokenize", "--decode", ids), 2, f'--decode "{ids}"')
        for tasks in ("", ",,"):
            self.expect_error(run("eval", "--tasks", tasks), 2, f'--tasks "{tasks}"')

    def test_a_report_that_cannot_be_written_is_refused_before_the_work(self):
        args = ("eval", "--model", self.folder / "no-model", "--json")
        self.expect_error(run(*args, self.folder), 1, f"cannot write {self.folder}:")
        self.expect_error(run(*args, "/dev/null"), 1, "cannot write /dev/null:")
        self.expect_error(run(*args, self.folder / "no" / "report"), 1, f"{self.folder / 'no'}")
        self.expect_error(run(*args, ""), 1, "cannot write :")
        self.expect_error(run(*args, "report.json"), 1, "no-model")

    def test_unknown_flags_and_commands(self):
        self.expect_error(run("generate", "--fast", "x"), 2, "--fast")
        self.expect_error(run("frobnicate"), 2, "frobnicate")
        self.expect_error(run(), 2)
        self.expect_error(run("tokenize"), 2)
        self.expect_error(run("make-checkpoint"), 2, "--out")
        self.expect_error(run("eval", "--tasks", "nonsense"), 1, "nonsense", "add")

    def test_bad_tools_files(self):
        self.expect_error(run("generate", "--tools", self.folder / "absent.json", "x"), 1,
                          "absent.json")
        self.expect_error(run("generate", "--tools", self.write("t.json", "[{]"), "x"), 1, "t.json")


if __name__ == "__main__":
    main()
