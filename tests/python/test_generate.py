"""LLM.generate, LLM.chat and SamplingParams."""

import copy
import json
import pickle
import re

from support import EngineTest, main, program

from deepinfer import SamplingParams

QUESTION = [{"role": "user", "content": "What is 17 + 25?"}]


class Generate(EngineTest):
    def test_text_is_the_programs_for_the_same_prompt(self):
        raw = self.llm.generate("It was", SamplingParams(max_tokens=24))[0].outputs[0]
        self.assertEqual(raw.text + "\n", program("generate", "--raw", "--max-tokens", "24",
                                                  "It was"))
        self.assertEqual(raw.finish_reason, "length")
        answer = self.llm.chat(QUESTION)[0].outputs[0]
        self.assertEqual(answer.text + "\n", program("generate", QUESTION[0]["content"]))
        self.assertEqual(answer.finish_reason, "stop")
        sampled = SamplingParams(max_tokens=12, temperature=1.2, top_p=0.9, seq_seed=5)
        self.assertEqual(self.llm.generate("It was", sampled)[0].outputs[0].text + "\n",
                         program("generate", "--raw", "--max-tokens", "12", "--temperature", "1.2",
                                 "--top-p", "0.9", "--seed", "5", "It was"))

    def test_a_batch_keeps_the_order_of_prompts_and_their_own_parameters(self):
        prompts = ["It was", "Once upon a time", "The", "In the morning"]
        params = [SamplingParams(max_tokens=3 * i + 1, temperature=1, seq_seed=i) for i in range(4)]
        together = self.llm.generate(prompts, params)
        alone = [self.llm.generate([p], q)[0] for p, q in zip(prompts, params)]
        self.assertEqual([o.outputs[0].token_ids for o in together],
                         [o.outputs[0].token_ids for o in alone])
        self.assertEqual([len(o.outputs[0].token_ids) for o in together], [1, 4, 7, 10])
        self.assertEqual(self.llm.generate([]), [])

    def test_text_ids_and_chats_are_prompts(self):
        ids = self.llm.tokenize("It was")
        self.assertEqual(self.llm.detokenize(ids), "It was")
        text = self.llm.generate("It was", SamplingParams(max_tokens=4))[0]
        self.assertEqual(text.prompt_token_ids[1:], ids)
        again = self.llm.generate([text.prompt_token_ids], SamplingParams(max_tokens=4))[0]
        self.assertEqual(again.outputs[0].text, text.outputs[0].text)
        chats = self.llm.generate([QUESTION, {"messages": QUESTION, "mode": "thinking"}])
        self.assertEqual(chats[0].outputs[0].text, "17 + 25 = 42.")
        self.assertIn("</think>", chats[1].outputs[0].text)
        self.assertEqual(self.llm.chat([QUESTION, QUESTION])[1].outputs[0].text, "17 + 25 = 42.")

    def test_each_of_n_choices_draws_from_its_own_seed(self):
        params = SamplingParams(n=4, temperature=1.5, max_tokens=8, seq_seed=3)
        output = self.llm.generate("It was", params)[0]
        self.assertEqual([choice.index for choice in output.outputs], [0, 1, 2, 3])
        self.assertEqual(len({choice.text for choice in output.outputs}), 4)
        single = self.llm.generate("It was", params.replace(n=1))[0]
        self.assertEqual(single.outputs[0].text, output.outputs[0].text)
        self.assertEqual(output.usage.completion_tokens, 32)

    def test_a_seed_fixes_sampled_text(self):
        def text(seed):
            params = SamplingParams(temperature=1.5, max_tokens=8, seq_seed=seed)
            return self.llm.generate("It was", params)[0].outputs[0].text

        self.assertEqual(text(2**64 - 1), text(2**64 - 1))
        self.assertNotEqual(text(1), text(2))

    def test_stop_strings_and_stop_tokens_end_the_text_before_them(self):
        plain = self.llm.generate("It was", SamplingParams(max_tokens=16))[0].outputs[0]
        self.assertIn(" had been", plain.text)
        cut = self.llm.generate("It was", SamplingParams(max_tokens=16, stop=["xyz", "d b"]))[0]
        self.assertEqual(cut.outputs[0].text, plain.text[:plain.text.index("d b")])
        self.assertEqual(cut.outputs[0].stop_string, "d b")
        self.assertEqual(cut.outputs[0].finish_reason, "stop")
        token = plain.token_ids[3]
        by_token = self.llm.generate("It was", SamplingParams(stop_token_ids=[token]))[0].outputs[0]
        self.assertEqual(by_token.stop_token, token)
        self.assertEqual(by_token.token_ids, plain.token_ids[:4])

    def test_logprobs_come_with_every_token(self):
        output = self.llm.generate(
            "It was a", SamplingParams(max_tokens=3, logprobs=4, prompt_logprobs=0))[0]
        choice = output.outputs[0]
        self.assertEqual(len(choice.logprobs), 3)
        for token, logprobs in zip(choice.token_ids, choice.logprobs):
            self.assertEqual(logprobs.chosen.token, token)
            self.assertEqual(logprobs.rank, 1)
            values = [entry.logprob for entry in logprobs.top]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertEqual((len(values), values[0]), (4, logprobs.chosen.logprob))
        self.assertAlmostEqual(choice.cumulative_logprob,
                               sum(entry.chosen.logprob for entry in choice.logprobs), places=6)
        self.assertEqual([entry.chosen.token for entry in output.prompt_logprobs],
                         output.prompt_token_ids[1:])

    def test_biases_and_token_sets_choose_tokens(self):
        ids = self.llm.tokenize("cat")
        biased = self.llm.generate("It was", SamplingParams(max_tokens=2, logit_bias={ids[0]: 100}))
        self.assertEqual(biased[0].outputs[0].token_ids, [ids[0]] * 2)
        allowed = self.llm.generate("It was", SamplingParams(max_tokens=3, allowed_token_ids=ids[:1]))
        self.assertEqual(allowed[0].outputs[0].token_ids, [ids[0]] * 3)

    def test_structured_output_has_its_form(self):
        def text(**so_args):
            params = SamplingParams(max_tokens=200, so_args=so_args)
            choice = self.llm.chat(QUESTION, params)[0].outputs[0]
            self.assertEqual(choice.finish_reason, "stop", choice.error)
            return choice.text

        self.assertTrue(re.fullmatch("[a-f]{3}-[0-9]{2}", text(schema_type="regex",
                                                               schema="[a-f]{3}-[0-9]{2}")))
        self.assertIn(text(schema_type="ebnf", schema='root ::= "yes" | "no"'), ("yes", "no"))
        schema = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}},
                  "required": ["colour"], "additionalProperties": False}
        for given in (schema, json.dumps(schema)):
            answer = json.loads(text(schema_type="json_schema", schema=given))
            self.assertIn(answer, ({"colour": "red"}, {"colour": "blue"}))

    def test_usage_and_timings_are_of_the_request(self):
        output = self.llm.generate("It was", SamplingParams(max_tokens=5))[0]
        self.assertTrue(output.finished)
        self.assertEqual(output.usage.prompt_tokens, len(output.prompt_token_ids))
        self.assertEqual(output.usage.completion_tokens, 5)
        times = output.timings
        self.assertTrue(0 < times.scheduled < times.first_token < times.finished)


class Parameters(EngineTest):
    def test_parameters_are_values(self):
        params = SamplingParams(temperature=1, stop="x", logit_bias={3: -1}, logprobs=2,
                                so_args={"schema_type": "json", "schema": {"type": "null"}})
        self.assertEqual(params.stop, ["x"])
        self.assertEqual(params.logit_bias, {3: -1.0})
        self.assertEqual(params.so_args, {"schema_type": "json", "schema": '{"type": "null"}'})
        for same in (copy.copy(params), copy.deepcopy(params), pickle.loads(pickle.dumps(params)),
                     params.replace(), eval(repr(params))):
            self.assertEqual(same, params)
        changed = params.replace(temperature=0.5, logprobs=None)
        self.assertEqual((changed.temperature, changed.logprobs, params.temperature), (0.5, None, 1))
        params.max_tokens = 7
        self.assertNotEqual(params, same)
        self.assertEqual(SamplingParams(), SamplingParams(temperature=0.0, n=1))
        self.assertEqual(repr(SamplingParams(n=2)), "SamplingParams(n=2)")

    def test_a_record_shows_its_fields(self):
        output = self.llm.generate("It was", SamplingParams(max_tokens=1))[0]
        self.assertIn("CompletionOutput(index=0, text=' a', token_ids=[", repr(output))
        with self.assertRaises(AttributeError):
            output.finished = False

    def test_the_engine_tells_what_it_does(self):
        before = self.llm.stats()
        self.llm.generate(["It was"] * 3, SamplingParams(max_tokens=4))
        after = self.llm.stats()
        self.assertEqual(after.generated_tokens - before.generated_tokens, 12)
        self.assertEqual((after.running, after.waiting), (0, 0))
        self.assertGreater(after.times.forward, before.times.forward)
        self.assertIn("vllm:generation_tokens_total", self.llm.metrics_text())
        self.assertIn("KV cache", self.llm.memory_text())
        self.assertEqual(self.llm.max_model_len, 8192)


if __name__ == "__main__":
    main()
