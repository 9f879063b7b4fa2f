"""Outputs that fail: a full disk is an error, a reader that left is not."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import program  # noqa: E402
from program import NANO, ProgramTest, environment, main, run  # noqa: E402


class FullDisk(ProgramTest):
    def test_every_command_reports_it(self):
        messages = self.write("m.json", '[{"role": "user", "content": "x"}]')
        for args in (("--version",), ("generate", "--help"), ("tokenize", "x"),
                     ("encode", messages), ("inspect", NANO),
                     ("generate", "--max-tokens", "1", "--raw", "x")):
            with open("/dev/full", "wb") as full:
                done = run(*args, stdout=full)
            self.expect_error(done, 1, "No space left on device")

    def test_a_report_that_cannot_be_written_is_an_error(self):
        absent = self.folder / "no" / "such" / "report.json"
        done = run("eval", "--tasks", "identity", "--limit", "1", "--json", absent)
        self.expect_error(done, 1, str(absent.parent))

    def test_a_pipe_or_device_is_not_replaced_by_a_report(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        done = run("eval", "--tasks", "identity", "--limit", "1", "--json", pipe)
        self.expect_error(done, 1, str(pipe))
        self.assertTrue(pipe.is_fifo())
        done = run("chat", stdin=f"/save {pipe}\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(pipe), done.err)
        self.assertTrue(pipe.is_fifo())


class ClosedPipe(ProgramTest):
    def closed(self, *args, stdin=b""):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            return run(*args, stdin=stdin, stdout=writer)
        finally:
            os.close(writer)

    def test_it_ends_quietly(self):
        for args in (("--help",), ("tokenize", "x"), ("inspect", "--tensors", NANO),
                     ("generate", "--raw", "It was a dark night")):
            done = self.closed(*args)
            self.assertEqual(done.returncode, 0, done.err)
            self.assertNotIn("error", done.err)

    def test_generation_stops_when_the_reader_leaves(self):
        with subprocess.Popen([program.BINARY, "generate", "--raw", "It was a dark night"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment()) as process:
            process.stdout.read(1)
            process.stdout.close()
            self.assertNotIn(b"error", process.stderr.read())
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    main()
