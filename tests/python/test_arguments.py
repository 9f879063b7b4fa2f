"""Arguments that are not allowed are refused with their name, value and range, and do no harm."""

import pathlib

from support import EngineTest, NANO, main

import deepinfer
from deepinfer import LLM, SamplingParams


class Arguments(EngineTest):
    def refused(self, call, *parts, kind="invalid_argument"):
        with self.assertRaises(deepinfer.Error) as caught:
            call()
        self.assertEqual(caught.exception.kind, kind)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_sampling_parameters_of_a_wrong_type(self):
        for name, value, *parts in [
                ("temperature", "hot", "'hot'", "no number"),
                ("temperature", 10**400, "no number that a float holds"),
                ("top_p", None, "None"),
                ("max_tokens", 3.0, "3.0", "no integer"),
                ("max_tokens", True, "True", "no integer"),
                ("max_tokens", 2**70, str(2**70), "outside"),
                ("seq_seed", -1, "-1", "0 to 18446744073709551615"),
                ("ignore_eos", 1, "neither True nor False"),
                ("stop", [b"x"], "stop[0] b'x'", "no str"),
                ("stop", "\ud800", "lone surrogate"),
                ("stop_token_ids", 5, "5", "no list of token ids"),
                ("stop_token_ids", [2**31], "stop_token_ids[0] 2147483648", "0 to 2147483647"),
                ("logit_bias", [(1, 2)], "no dict"),
                ("logit_bias", {"a": 1}, "'a'", "no integer"),
                ("logit_bias", {1: "b"}, "logit_bias[1] 'b'"),
                ("so_args", "regex", "'regex'", "schema_type"),
                ("so_args", {"schema": "a"}, "schema_type"),
                ("so_args", {"schema_type": "regex", "scheme": "a"}, "'scheme'"),
                ("so_args", {"schema_type": "regex", "schema": {}}, "so_args: schema {} is no str"),
                ("so_args", {"schema_type": "json", "schema": {"a": {1, 2}}}, "JSON")]:
            with self.subTest(name=name, value=repr(value)[:40]):
                self.refused(lambda: SamplingParams(**{name: value}), name, *parts)
                self.refused(lambda: setattr(SamplingParams(), name, value), name, *parts)
        self.refused(lambda: SamplingParams(temprature=1), "temprature", "temperature, top_p")
        with self.assertRaises(ValueError):
            SamplingParams(temperature="hot")

    def test_sampling_parameters_outside_their_range(self):
        steps = self.llm.stats().steps
        for name, value, *parts in [
                ("temperature", -1, "0 to 100"), ("temperature", float("nan"), "0 to 100"),
                ("top_p", 0, "(0, 1]"), ("top_k", -1, "negative"), ("min_p", 2, "0 to 1"),
                ("repetition_penalty", 0, "0.01 to 100"), ("frequency_penalty", 3, "-2 to 2"),
                ("presence_penalty", -3, "-2 to 2"), ("logit_bias", {1: 101}, "-100 to 100"),
                ("allowed_token_ids", [8192], "8192", "0 to 8191"),
                ("stop", [""], "1 to 256"), ("stop", ["a"] * 10000, "10000", "at most 64"),
                ("max_tokens", 0, "1 to 1048576"), ("min_tokens", 513, "max_tokens 512"),
                ("n", 129, "1 to 128"), ("logprobs", 21, "0 to 20"),
                ("prompt_logprobs", -1, "0 to 20"),
                ("so_args", {"schema_type": "yaml", "schema": "a"}, "yaml", "json_schema, json")]:
            with self.subTest(name=name):
                params = SamplingParams(**{name: value})
                self.refused(lambda: self.llm.generate(["a", "b"], params), "prompt 0: ", name,
                             *parts)
                self.refused(lambda: self.llm.submit("a", params), name, *parts)
        self.assertEqual(self.llm.stats().steps, steps)

    def test_prompts(self):
        for prompts, *parts in [
                (5, "prompts 5"), (["a", 5], "prompts[1] 5"), ([None], "prompts[0] None"),
                ([b"a"], "prompts[0] b'a'"), ("\ud800", "lone surrogate"),
                ([[1, "a"]], "prompts[0][1] 'a'"), ([[1, -1]], "prompts[0][1] -1", "0 to"),
                ([[1, 8192]], "8192", "0 to 8191"), ([[]], "empty"), ("", "empty"),
                ({"tools": []}, "no \"messages\""), ({"messages": []}, "no messages"),
                ({"messages": [{"role": "judge", "content": ""}]}, "judge", "system"),
                ({"messages": [{"role": "user", "content": object()}]}, "prompts", "JSON"),
                ({"messages": [{"role": "user", "content": float("nan")}]}, "JSON")]:
            with self.subTest(prompts=repr(prompts)[:40]):
                self.refused(lambda: self.llm.generate(prompts), *parts)
        self.refused(lambda: self.llm.generate([[1] * 8192]), "8192 tokens", "at most 8191",
                     kind="resource_exhausted")
        self.refused(lambda: self.llm.generate(["a", "b"], [SamplingParams()]), "1 entries",
                     "2 prompts")
        self.refused(lambda: self.llm.generate("a", {"n": 1}), "sampling_params")
        self.refused(lambda: self.llm.generate(["a"], [5]), "sampling_params[0] 5")
        recursive = []
        recursive.append(recursive)
        self.refused(lambda: self.llm.generate(recursive), "prompts[0][0]")

    def test_circumstances_of_a_request(self):
        for name, value, *parts in [
                ("priority", 1001, "-1000 to 1000"), ("priority", 0.5, "no integer"),
                ("deadline", -1, "0 to 1e9"), ("deadline", float("nan"), "nan"),
                ("deadline", "soon", "'soon'"), ("cache_salt", 7, "7", "no str"),
                ("on_output", "print", "'print'", "called")]:
            with self.subTest(name=name, value=value):
                self.refused(lambda: self.llm.submit("a", **{name: value}), name, *parts)
        handle = self.llm.submit("a", SamplingParams(max_tokens=1))
        self.refused(lambda: handle.wait(timeout=-1), "timeout -1")
        self.refused(lambda: handle.next(timeout="x"), "timeout 'x'")
        self.refused(lambda: self.llm.tokenize(5), "text 5")
        self.refused(lambda: self.llm.detokenize("abc"), "token_ids 'abc'")

    def test_engine_options(self):
        self.refused(lambda: LLM(model=NANO, max_num_seqs=0), "max-num-seqs", "\"0\"", "1 to 65536")
        self.refused(lambda: LLM(model=NANO, prefill_mode="fast"), "prefill-mode", "off, compact")
        self.refused(lambda: LLM(model=NANO, thread=1), "thread")
        self.refused(lambda: LLM(model=NANO, threads=[1]), "threads [1]")
        self.refused(lambda: LLM(model=NANO, kv_cache_bytes=1 << 64), str(1 << 64))
        self.refused(lambda: LLM(model=pathlib.Path("/nowhere")), "/nowhere", kind="not_found")
        with self.assertRaises(deepinfer.Error) as caught:
            LLM(model=NANO, kv_cache_bytes=1)
        self.assertEqual(caught.exception.kind, "resource_exhausted")
        llm = LLM(model=NANO, async_scheduling=False, max_num_seqs=2, threads=None,
                  memory_fraction=0.25)
        self.addCleanup(llm.close)
        self.assertEqual(llm.generate("It was", SamplingParams(max_tokens=2))[0].outputs[0].text,
                         " a long")


if __name__ == "__main__":
    main()
