"""Offline inference: a batch of prompts, then one answer as it arrives.

    PYTHONPATH=build/release/python python3 examples/offline_inference.py [MODEL]
"""

import sys

from deepinfer import LLM, SamplingParams

llm = LLM(model=sys.argv[1] if len(sys.argv) > 1 else None)

params = SamplingParams(temperature=0.6, top_p=0.95, seq_seed=1, max_tokens=32)
prompts = [
    {"messages": [{"role": "user", "content": "What is 17 + 25?"}]},
    "It was a dark and stormy night",
]
for output in llm.generate(prompts, params):
    print(output.outputs[0].text)

number = SamplingParams(max_tokens=32, so_args={"schema_type": "regex", "schema": "[0-9]{1,3}"})
for delta in llm.submit(prompts[0], number):
    print(delta.text, end="", flush=True)
print()
