"""deepinfer bench: fields of its lines, bad arguments, interrupts."""

import csv
import io
import json
import signal
import subprocess
import time

import program
from program import NANO, ProgramTest, environment, main, run

QUICK = ("--threads", "2", "--repeat", "2", "--min-time", "0.001", "--buffer-mib", "4")
FIELDS = ["name", "params", "value", "unit", "min", "max", "repetitions", "ceiling", "share",
          "seconds"]


class Bench(ProgramTest):
    def bench(self, what, *args):
        """Records of a run, each checked for what all have in common."""
        done = run("bench", what, "--json", *QUICK, *args)
        self.assertEqual(done.returncode, 0, done.err)
        records = [json.loads(line) for line in done.out.splitlines()]
        self.assertTrue(records)
        for record in records:
            self.assertEqual(list(record), FIELDS)
            self.assertIsInstance(record["params"], dict)
            self.assertGreaterEqual(record["value"], 0)
            self.assertLessEqual(record["min"], record["value"])
            self.assertLessEqual(record["value"], record["max"])
            if record["ceiling"] is not None:
                self.assertAlmostEqual(record["share"], record["value"] / record["ceiling"])
        return records

    def test_ceiling_measures_every_thread_count_and_source(self):
        records = self.bench("ceiling", "--cpu-target", "scalar")
        found = [(r["name"], r["params"]["threads"], r["params"].get("source")) for r in records]
        for threads in (1, 2):
            self.assertIn(("ceiling.read", threads, "memory"), found)
            self.assertIn(("ceiling.read", threads, "mapped_file"), found)
            self.assertIn(("ceiling.multiply", threads, None), found)
        file = self.write("data", bytes(1 << 20))
        records = self.bench("ceiling", "--cpu-target", "scalar", "--file", file)
        mapped = [r for r in records if r["params"].get("source") == "mapped_file"]
        self.assertEqual({r["params"]["bytes"] for r in mapped}, {1 << 20})

    def test_kernel_measures_products_and_the_rest(self):
        records = self.bench("kernel", "--dims", "tiny", "--rows", "1,3", "--context", "40")
        gemms = [r for r in records if r["name"] == "kernel.gemm"]
        self.assertEqual({r["params"]["kind"] for r in gemms},
                         {"q8_fp8", "q8_fp4", "bf16_fp8", "bf16", "bf16_f32"})
        self.assertEqual({r["params"]["m"] for r in gemms}, {1, 3})
        for record in gemms:
            self.assertIn(record["unit"], ("GB/s", "GFLOP/s"))
            self.assertGreater(record["ceiling"], 0)
        names = {r["name"] for r in records}
        self.assertLessEqual({"kernel.attention", "kernel.rms_norm", "kernel.select"}, names)

    def test_kernel_takes_the_models_dimensions_and_named_kernels_alone(self):
        records = self.bench("kernel", "--dims", "model", "--model", NANO, "--kernels",
                             "rms_norm,rope", "--rows", "2")
        self.assertEqual([(r["name"], r["params"]["dims"], r["params"]["rows"]) for r in records],
                         [("kernel.rms_norm", "nano", 2), ("kernel.rope", "nano", 2)])

    def test_prefill_reports_speed_and_arithmetic(self):
        records = self.bench("prefill", "--prompt-tokens", "20,200", "--modes", "off,compact",
                             "--profile")
        speeds = [(r["params"]["prompt_tokens"], r["params"]["mode"]) for r in records
                  if r["name"] == "prefill.speed"]
        self.assertEqual(speeds, [(20, "off"), (20, "compact"), (200, "off"), (200, "compact")])
        gemm = next(r for r in records if r["name"] == "prefill.gemm")
        whole = next(r for r in records if r["name"] == "prefill.end_to_end")
        self.assertGreater(gemm["value"], whole["value"])
        shares = [r["share"] for r in records if r["name"] == "prefill.profile"]
        self.assertAlmostEqual(sum(shares), 4)  # each of the four runs is divided up

    def test_decode_reports_speed_over_batch_and_context(self):
        records = self.bench("decode", "--context", "20,4000", "--batch", "1,3", "--steps", "2",
                             "--synthetic-context")
        speeds = [(r["params"]["context"], r["params"]["batch"]) for r in records
                  if r["name"] == "decode.speed"]
        self.assertEqual(speeds, [(20, 1), (20, 3), (4000, 1), (4000, 3)])
        for record in records:
            self.assertEqual(record["params"]["context_kind"], "synthetic")
            self.assertGreater(record["share"], 0)
        one, three = (next(r["params"] for r in records if r["params"]["batch"] == batch)
                      for batch in (1, 3))
        self.assertEqual(one["step_bytes"], one["active_bytes"])
        self.assertGreater(three["step_bytes"], one["step_bytes"])
        self.assertLess(three["step_bytes"], 3 * one["step_bytes"])
        records = self.bench("decode", "--context", "9", "--steps", "2", "--profile")
        self.assertEqual(records[0]["params"]["context_kind"], "prefill")
        profile = [r for r in records if r["name"] == "decode.profile"]
        self.assertEqual(profile[-1]["params"]["kernel"], "outside_kernels")
        self.assertAlmostEqual(sum(r["share"] for r in profile), 1)

    def test_load_tells_cold_from_warm_and_holds_the_weights_once(self):
        records = self.bench("load")
        times = [r["params"] for r in records if r["name"] == "load.time"]
        self.assertEqual([p["cache"] for p in times], ["cold", "warm"])
        self.assertGreaterEqual(times[1]["cached_bytes"], times[1]["weight_bytes"])
        anonymous = [r["share"] for r in records if r["params"].get("memory") == "anonymous"]
        self.assertEqual(len(anonymous), 2)
        for share in anonymous:
            self.assertLess(share, 0.5)

    def test_the_other_forms(self):
        args = ("bench", "kernel", "--dims", "tiny", "--kernels", "rms_norm", "--rows", "1", *QUICK)
        rows = list(csv.reader(io.StringIO(run(*args, "--csv").out)))
        self.assertEqual(rows[0], FIELDS)
        self.assertEqual([len(row) for row in rows], [len(FIELDS)] * 2)
        lines = run(*args).out.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("median", lines[0])
        self.assertIn("kernel.rms_norm", lines[1])

    def test_bad_arguments_are_named(self):
        for args, parts in (
                (("speed",), ("bench speed", "ceiling, kernel, prefill, decode, load")),
                (("ceiling", "--json", "--csv"), ("--json or --csv",)),
                (("ceiling", "--batch", "2"), ("--batch means nothing to bench ceiling",)),
                (("kernel", "--profile"), ("--profile means nothing to bench kernel",)),
                (("kernel", "--rows", "1,x"), ('--rows "1,x"', '"x"', "1 to 65536")),
                (("kernel", "--rows", ""), ("--rows",)),
                (("kernel", "--dims", "huge"), ('--dims "huge"', "model, release, mid, tiny")),
                (("kernel", "--kernels", "gem"), ('"gem"', "gemm")),
                (("prefill", "--modes", "fast"), ('--modes "fast"', "off or compact")),
                (("prefill", "--prompt-tokens", "0"), ("--prompt-tokens", '"0"')),
                (("decode", "--batch", "1,,2"), ("--batch", '""')),
                (("decode", "--steps", "0"), ("--steps", "1 to")),
                (("load", "--min-time", "fast"), ('--min-time "fast"', "0.0001 to 60")),
                (("load", "--min-time", "0"), ('--min-time "0"', "0.0001 to 60")),
                (("ceiling", "--cpu-target", "reference"), ("no loops of its own",)),
                (("ceiling", "--model", NANO), ("--model means nothing to bench ceiling",)),
                (("kernel", "--dims", "tiny,tiny"), ('"tiny" stands twice',)),
                (("load", "--repeat", "0"), ("--repeat",)),
                (("ceiling", "--cpu-target", "mmx"), ("mmx", "one of auto, reference", "command line")),
        ):
            self.expect_error(run("bench", *args), 2, *parts)
        self.expect_error(run("bench"), 2, "WHAT")
        self.expect_error(run("bench", "prefill", "--prompt-tokens", "9000"), 1, "9000", "8192")
        self.expect_error(run("bench", "decode", "--context", "8190"), 1, "8190", "8192")
        self.expect_error(run("bench", "kernel", "--dims", "model", "--model", NANO, "--context",
                              "8192"), 1, "8192", "at most")
        self.expect_error(run("bench", "ceiling", "--file", self.folder / "none", *QUICK), 1,
                          "none")

    def test_an_interrupt_keeps_what_was_measured(self):
        command = [program.BINARY, "bench", "kernel", "--json", "--dims", "tiny", "--repeat",
                   "1000", "--min-time", "0.001", "--buffer-mib", "4"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(), text=True) as process:
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            rest = process.stdout.read()
            process.wait(timeout=60)
            self.assertLess(time.monotonic() - start, 30)
            process.stderr.read()
        self.assertEqual(process.returncode, -signal.SIGINT)
        for line in (first + rest).splitlines():
            self.assertEqual(list(json.loads(line)), FIELDS)


if __name__ == "__main__":
    main()
