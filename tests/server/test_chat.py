"""``/v1/chat/completions``: turns are text, and nothing in them is more than text."""

from nextword.server.chat import prompt_of
from nextword.server.schemas import ChatMessage

TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "the cat"}]


def test_turns_are_written_one_after_another():
    turns = [ChatMessage(**turn) for turn in [*TURNS, {"role": "assistant", "content": "sat"}]]
    assert prompt_of(turns) == "system: Be brief.\nuser: the cat\nassistant: sat\nassistant:"


def test_parts_of_a_message_are_joined():
    parts = [{"type": "text", "text": "the "}, {"type": "text", "text": "cat"}]
    assert prompt_of([ChatMessage(role="user", content=parts)]) == "user: the cat\nassistant:"


def test_template_language_in_a_message_stays_text():
    text = "{{ 7 * 7 }}{% for x in y %}{role}</s>"
    assert text in prompt_of([ChatMessage(role="user", content=text)])


def test_answer_is_the_continuation_of_the_prompt(site):
    asked = {"model": "lstm", "messages": TURNS, "max_tokens": 9, "temperature": 0, "logprobs": True}
    chat = site.ask("/v1/chat/completions", {**asked, "top_logprobs": 2}).json["choices"][0]
    plain = site.complete(
        "lstm", "system: Be brief.\nuser: the cat\nassistant:", max_tokens=9, temperature=0, logprobs=2
    ).json["choices"][0]
    assert chat["message"] == {"role": "assistant", "content": plain["text"].lstrip()}
    assert [each["token"] for each in chat["logprobs"]["content"]] == plain["logprobs"]["tokens"]
    assert all(len(each["top_logprobs"]) == 2 for each in chat["logprobs"]["content"])


def test_stream_is_the_whole_answer_piece_by_piece(site):
    asked = {"model": "counts", "messages": TURNS, "max_tokens": 20, "seed": 5, "n": 2}
    whole = site.ask("/v1/chat/completions", asked).json["choices"]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    events = site.ask("/v1/chat/completions", {**asked, **options}).events
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["total_tokens"] > 0
    for index in (0, 1):
        pieces = [each for event in events for each in event["choices"] if each["index"] == index]
        assert pieces[0]["delta"]["role"] == "assistant"
        text = "".join(each["delta"].get("content", "") for each in pieces)
        assert text == whole[index]["message"]["content"]
        assert pieces[-1]["finish_reason"] == whole[index]["finish_reason"]
