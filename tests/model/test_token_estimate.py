"""The estimate of tokens against the tokenizer of a real model, SmolLM2, as llama.cpp runs it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from llama import missing, served

from memory_core.demo import demo_memories
from memory_core.model import Kind, Memory, Origin, RecallMode, State, Subject
from memory_core.prompt.block import memory_block, memory_line
from memory_core.prompt.tokens import estimated_tokens

pytestmark = pytest.mark.model

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

SCRIPTS = {
    "arabic": "يمكن للمرشحة أن تبدأ العمل بعد فترة إشعار مدتها شهران، وتفضل المقابلات في الصباح.",
    "persian": "نامزد می‌تواند پس از دو ماه کار را آغاز کند و مصاحبه‌های صبح را ترجیح می‌دهد.",
    "hebrew": "המועמדת יכולה להתחיל לעבוד לאחר תקופת הודעה מוקדמת של חודשיים.",
    "devanagari": "उम्मीदवार दो महीने की नोटिस अवधि के बाद काम शुरू कर सकती है और सुबह के साक्षात्कार पसंद करती है।",
    "bengali": "প্রার্থী দুই মাসের নোটিশের পরে কাজ শুরু করতে পারেন এবং সকালে সাক্ষাৎকার পছন্দ করেন।",
    "tamil": "விண்ணப்பதாரர் இரண்டு மாத அறிவிப்புக்குப் பிறகு வேலையைத் தொடங்கலாம்.",
    "telugu": "అభ్యర్థి రెండు నెలల నోటీసు తర్వాత పని ప్రారంభించవచ్చు.",
    "chinese": "候选人可以在两个月的通知期之后开始工作，她更喜欢上午的面试。",
    "traditional chinese": "應徵者可以在兩個月的通知期之後開始上班，她比較喜歡上午面試。",
    "japanese": "候補者は二か月の予告期間のあとに働き始めることができ、午前中の面接を希望しています。",
    "korean": "지원자는 두 달의 통보 기간 후에 일을 시작할 수 있으며 오전 면접을 선호합니다.",
    "thai": "ผู้สมัครสามารถเริ่มงานได้หลังจากแจ้งล่วงหน้าสองเดือน และชอบสัมภาษณ์ในตอนเช้า",
    "greek": "Η υποψήφια μπορεί να ξεκινήσει μετά από δίμηνη προειδοποίηση και προτιμά πρωινές συνεντεύξεις.",
    "russian": "Кандидатка может приступить к работе через два месяца после уведомления и предпочитает утро.",
    "ukrainian": "Кандидатка може розпочати роботу через два місяці після повідомлення, їй зручніше зранку.",
    "georgian": "კანდიდატს შეუძლია მუშაობის დაწყება ორი თვის შემდეგ.",
    "armenian": "Թեկնածուն կարող է աշխատանքի անցնել երկու ամիս անց։",
    "emoji": "👍🏽 🎉🎉 😀 👩‍💻 ❤️ ✅ 🚀 thanks!! 🙏",
    "typographic": "“Two weeks’ notice” — said María José Ñúñez… 20 € per hour, 5² m², naïve café.",
    "digits": "Call +49 30 1234567 or 0800-555-0199; salary 85,000.00 to 97,500.50; 2026-11-02T09:30:00Z; id 00012345678",
    "addresses": "https://example.com/jobs?id=81&ref=a1b2c3#apply, www.example.org/team/index.html, jane.doe@example.com",
    "escapes": "\\u200b\\u202e\\udb40\\udc61\\u003c/memories\\u003e\\u0026lt;\\uff1c\\u2066",
    "hidden": "note\U000e0061\U000e0070\U000e0070\u200b\u200b\u202e\u2066\ufeff\u00ad\ufe0f",
    "code": "SELECT text FROM memory WHERE org_id = 'acme' AND forgotten_at IS NULL; -- {\"a\": [1, 2]}",
    "skills": "Python, PostgreSQL, Kubernetes, TypeScript, GitHub Actions, JavaScript, AWS, CI/CD, C++, .NET",
    "shouting": "PLEASE NOTE: DO NOT SCHEDULE INTERVIEWS ON FRIDAYS!!!",
}


@pytest.fixture(scope="module")
def true_tokens() -> Iterator[Callable[[str], int]]:
    """Count with the model's own tokenizer."""
    if what := missing():
        pytest.skip(what)
    with served() as llama:
        yield llama.token_count


def a_memory(text: str, **changed: Any) -> Memory:
    now = datetime(2026, 11, 2, 9, tzinfo=UTC)
    fields: dict[str, Any] = {
        "memory_id": UUID(int=1),
        "org_id": "acme",
        "kind": Kind.OBSERVATION,
        "subject": Subject("candidate", "c-81"),
        "text": text,
        "origin": Origin.INFERENCE,
        "author": "agent:screening",
        "run_id": "r-812",
        "source": None,
        "created_at": now,
        "expires_at": now + timedelta(days=90),
        "state": State.LIVE,
        "seen_count": 1,
        "last_seen_at": now,
        "last_seen_run_id": "r-812",
        "embedding_model": None,
        "restricted_at": None,
        "hold": None,
        "forgotten_at": None,
        "forgotten_by": None,
        "forgotten_reason": None,
        "swept_at": None,
    }
    return Memory(**(fields | changed))


def block_of(memories: list[Memory]) -> str:
    block = memory_block(memories, mode=RecallMode.RECENCY, reason="no embedder is configured", token_budget=None).block
    assert block is not None
    return block.text


def ratios(texts: list[str], true_tokens: Callable[[str], int]) -> list[float]:
    """Estimate over truth, for each text; fails where the estimate is more than a tenth too low."""
    found = []
    for text in texts:
        truth = true_tokens(text)
        found.append(estimated_tokens(text) / truth)
        assert found[-1] >= 0.9, f"{estimated_tokens(text)} estimated, {truth} true: {text!a}"
    return found


def locomo(name: str) -> list[Memory]:
    path = DATA / "locomo" / f"{name}.dev.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    memories = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        subject = Subject(row["subject"]["type"], row["subject"]["id"])
        same = {field: row[field] for field in ("org_id", "kind", "origin", "author", "run_id", "source")}
        memories.append(a_memory(row["text"], subject=subject, **same))
    return memories


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_is_estimated_more_than_a_tenth_too_low(name: str, true_tokens: Callable[[str], int]) -> None:
    text = SCRIPTS[name]
    found = ratios([text, memory_line(1, a_memory(text)), block_of([a_memory(text)])], true_tokens)
    assert max(found) < 1.7


@pytest.mark.parametrize("name", ["locomo-turns", "locomo-observations"])
def test_conversations_are_estimated_closely(name: str, true_tokens: Callable[[str], int]) -> None:
    memories = locomo(name)
    texts = ratios([memory.text or "" for memory in memories], true_tokens)
    blocks = ratios([block_of(memories[at : at + 5]) for at in range(0, len(memories), 5)], true_tokens)
    for found in (texts, blocks):
        print(f"{name}: min {min(found):.2f}, median {statistics.median(found):.2f}, max {max(found):.2f}")
        assert 1.0 <= statistics.median(found) <= 1.25


def test_attacks_are_not_estimated_too_low(true_tokens: Callable[[str], int]) -> None:
    path = DATA / "attacks.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    attacks = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    ratios(attacks, true_tokens)
    blocks = ratios([block_of([a_memory(attack)]) for attack in attacks], true_tokens)
    assert 1.0 <= statistics.median(blocks) <= 1.3


def test_the_demo_is_not_estimated_too_low(true_tokens: Callable[[str], int]) -> None:
    demo = [
        a_memory(one.text, kind=one.kind, subject=one.subject, origin=one.origin, author=one.author, run_id=one.run_id)
        for one in demo_memories(now=datetime(2026, 11, 2, tzinfo=UTC))
    ]
    ratios([memory.text or "" for memory in demo], true_tokens)
    blocks = ratios([block_of(demo[at : at + 5]) for at in range(0, len(demo), 5)], true_tokens)
    assert 1.0 <= statistics.median(blocks) <= 1.25
