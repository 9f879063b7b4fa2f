"""The commands beside generation: tokenize, encode, inspect, make-checkpoint, help."""

import json
import signal
import subprocess
import time

import program
from program import NANO, ProgramTest, environment, main, run


class Tools(ProgramTest):
    def test_tokenize_round_trips_any_bytes(self):
        data = bytes(range(256)) + "Hello 世界 <think>".encode()
        ids = json.loads(run("tokenize", "--json", "--file", self.write("x", data)).out)["ids"]
        done = run("tokenize", "--decode", ",".join(map(str, ids)))
        self.assertEqual(done.stdout, data + b"\n")

    def test_special_tokens_are_read_only_on_demand(self):
        as_text = json.loads(run("tokenize", "--json", "<think>").out)
        parsed = json.loads(run("tokenize", "--json", "--special", "<think>").out)
        self.assertGreater(as_text["count"], 1)
        self.assertEqual(parsed["count"], 1)
        self.assertIn('"<think>"', run("tokenize", "--special", "<think>").out)

    def test_encode_shows_text_pieces_and_ids(self):
        messages = '[{"role": "user", "content": "Hi <think>"}]'
        text = run("encode", "-", stdin=messages)
        self.assertEqual(text.out, "<｜begin▁of▁sentence｜><｜User｜>Hi <think>"
                                   "<｜Assistant｜></think>\n")
        shown = json.loads(run("encode", "--json", "-", stdin=messages).out)
        self.assertEqual(shown["start_state"], "answer")
        self.assertEqual([kind for kind, _ in shown["segments"]],
                         ["control", "control", "text", "control", "control"])
        self.assertEqual(json.loads(run("encode", "--ids", "-", stdin=messages).out), shown["ids"])
        thinking = run("encode", "--thinking", "--effort", "30", "-", stdin=messages)
        self.assertIn("Reasoning Effort: 30 ", thinking.out)

    def test_inspect_names_architecture_and_bytes(self):
        done = run("inspect", NANO)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("2,292 tensors", done.out)
        json.loads(run("inspect", "--json", NANO).out)

    def test_a_made_checkpoint_runs_and_is_the_same_twice(self):
        outs = []
        for name in ("a", "b"):
            done = run("make-checkpoint", "--preset", "tiny", "--seed", "3", "--out",
                       self.folder / name)
            self.assertEqual(done.returncode, 0, done.err)
            done = run("generate", "--raw", "--max-tokens", "2", "--model", self.folder / name,
                       "x")
            self.assertEqual(done.returncode, 0, done.err)
            outs.append(done.stdout)
        self.assertEqual(outs[0], outs[1])
        self.expect_error(run("make-checkpoint", "--preset", "tiny", "--out", self.folder / "a"),
                          1, str(self.folder / "a"))

    def test_an_interrupted_make_checkpoint_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            # Large enough that it is not made before the signal comes.
            command = [program.BINARY, "make-checkpoint", "--preset", "mid", "--threads", "1",
                       "--out", str(self.folder / "made")]
            with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment()) as process:
                end = time.monotonic() + 60
                while not list(self.folder.glob("made.incomplete-*/*.safetensors")):
                    self.assertIsNone(process.poll(), "it ended before the signal")
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.005)
                process.send_signal(number)
                self.assertIn(b"cancelled", process.stderr.read())
            self.assertEqual(process.returncode, 1)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_settings_of_a_made_checkpoint_reach_its_configuration(self):
        done = run("make-checkpoint", "--set", "moe_intermediate_size=64,vocab_size=8448", "--out",
                   self.folder / "a")
        self.assertEqual(done.returncode, 0, done.err)
        config = json.loads((self.folder / "a" / "config.json").read_text())["text_config"]
        self.assertEqual((config["moe_intermediate_size"], config["vocab_size"]), (64, 8448))
        self.expect_error(run("make-checkpoint", "--set", "hidden_size", "--out", "x"), 2,
                          "hidden_size")

    def test_help_and_version(self):
        self.assertRegex(run("--version").out, r"^deepinfer \d+\.\d+\.\d+\n$")
        for command in ("generate", "chat", "inspect", "tokenize", "encode", "make-checkpoint",
                        "download", "eval"):
            done = run(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Examples:", done.out)
            self.assertIn(f"deepinfer {command}", done.out)


if __name__ == "__main__":
    main()
