"""Evals: how well the agents call their tools, by the suites."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import streamlit as st

from memory_core.characters import shown_whole
from memory_core.config import Tier
from memory_core.errors import ModelNotConfigured
from memory_core.evals.likeness import counterpart
from memory_core.evals.results import evaluation, evaluations, pass_shares, results, transcript
from memory_core.evals.statistics import Interval
from memory_core.evaluations import ASPECTS, CaseResult, Evaluation
from memory_core.roles import Act
from memory_core.run_records import MEANS
from pages import Visitor, explained, gate, plain
from pages.evals import address, cases_view, trend_view, trial_view, two_view
from pages.evals.words import Model, models_named, named

SECTIONS = ["Agents and cases", "Two evaluations", "Over time", "One trial"]
ANOTHER = "qwen3:1.7b"
NEWEST = 60  # evaluations that are drawn
DEFINITIONS = f"""
- **Case**: one task for one agent in a workspace of its own, with what has to come of it. **Trial**: one run of a case;
  each has its own seed, derived from the base seed. Everybody in the cases is invented: no memory's text is ever in them.
- **pass@1**: the share of judged trials that passed. **pass^k**: the chance that all of k trials of a case pass, by the
  unbiased C(c, k) / C(n, k) of c passes in n judged trials, mean over the cases that have k judged trials; beside it stands
  how many of the cases have.
- **95 % interval**: Wilson's. Trials of one case are not independent of each other, so with several trials of each case the
  interval of pass@1 is too narrow; that of pass^k is over cases, and rather too wide.
- **Not judged**: the trial failed for a reason that is not the model's, such as a server that did not answer. Such trials are
  counted apart, never dropped, and count in no share.
- **How it ended** is apart from whether it **passed**. {" ".join(f"*{end}*: {meaning}" for end, meaning in MEANS.items())}
  *gateway.…*: The model could not be asked. *none*: No run began.
- **Aspects**: {"; ".join(f"*{aspect}*, {meaning}" for aspect, meaning in ASPECTS.items())}. A trial passes when every aspect
  that applies to its case is met.
- **Sign test**: were two models equally good, how often would the cases in which they differ be split so unevenly or more?
  Exact and two-sided; p under 0.05 is commonly taken for more than chance. It counts cases, and not by how much they differ.
- **Bootstrap interval**: of the mean difference, from 2,000 drawings of as many cases with replacement, the same ones each
  time; the middle 95 % of their means. It says how far the mean depends on which cases are in the suites.
"""


def nothing(visitor: Visitor) -> None:
    """Say how the first evaluation is made."""
    st.info(
        "No evaluation is on record in this organisation yet. It needs a chat model: MODEL_API_KEY has to be set, and the "
        "model's server has to answer. See that both do, then try the agents; small models take minutes to hours on a CPU."
    )
    plain(f"python -m memory_core doctor\npython -m memory_core eval --org {visitor.org_id}")
    st.text("Or, for the organisation that MEMORY_ORG names:")
    plain("make eval-live")
    if not visitor.settings.has_model:
        st.warning("No model can be called now:")
        plain(str(ModelNotConfigured()))


def chosen_from(
    recorded: Sequence[Evaluation], models: Mapping[Model, str], label: str, name: str, default: Evaluation
) -> Evaluation:
    """Let an evaluation be chosen; the address keeps which."""
    by_id = {str(one.evaluation_id): one for one in recorded}
    labels = dict(zip(by_id, named(recorded, models), strict=True))
    key, asked = f"evals_{name}", st.query_params.get(name)
    if asked is not None and asked not in by_id:
        st.warning("The address names an evaluation that is not on record here, and is ignored:")
        plain(shown_whole(asked))
    st.session_state[key] = asked if asked in by_id else str(default.evaluation_id)

    def to_address() -> None:
        st.query_params[name] = st.session_state[key]

    return by_id[st.selectbox(label, list(by_id), format_func=labels.__getitem__, key=key, on_change=to_address)]


def on_record(visitor: Visitor) -> list[Evaluation]:
    """Read the newest evaluations, newest first, and after them older ones that the address names."""
    with explained():
        found: list[Evaluation] = visitor.call(evaluations)
        for name in address.EVALUATIONS:
            asked = _identity(st.query_params.get(name))
            if asked is not None and all(one.evaluation_id != asked for one in found):
                older = visitor.call(evaluation, asked)
                found += [] if older is None else [older]
    return found


def _identity(asked: str | None) -> UUID | None:
    try:
        found = UUID(asked)
    except (TypeError, ValueError):
        return None
    return found if str(found) == asked else None  # or it is not found again in the select box


def read(visitor: Visitor, of: Evaluation) -> list[CaseResult]:
    """Read the results of an evaluation."""
    with explained():
        return visitor.call(results, of.evaluation_id)


def two(
    visitor: Visitor,
    recorded: Sequence[Evaluation],
    models: Mapping[Model, str],
    first: Evaluation,
    of_first: list[CaseResult],
) -> None:
    """Compare the chosen evaluation with another."""
    other = counterpart(first, recorded)
    if other is None:
        st.info("One evaluation is on record, and it takes two. Try another model, such as:")
        tiers = " ".join(f"MODEL_{tier.upper()}={ANOTHER}" for tier in Tier)
        plain(f"{tiers} python -m memory_core eval --org {visitor.org_id}")
        return
    if st.query_params.get("against") == str(first.evaluation_id):  # chosen as the first meanwhile
        del st.query_params["against"]
    others = [one for one in recorded if one is not first]
    second = chosen_from(others, models, "Compared with", "against", other)
    two_view.show(first, second, {"first": of_first, "second": read(visitor, second)}, models)


def shares(visitor: Visitor, recorded: Sequence[Evaluation]) -> dict[UUID, Interval | None]:
    """Read pass@1 of evaluations."""
    with explained(), st.spinner(f"Reading the results of {len(recorded):,} evaluations…"):
        return visitor.call(pass_shares, [one.evaluation_id for one in recorded])


def one_trial(visitor: Visitor, of: Evaluation, found: list[CaseResult]) -> None:
    """Show one trial with its transcript."""

    def said(one: CaseResult) -> list[dict[str, object]]:
        with explained():
            return visitor.call(transcript, of.evaluation_id, agent=one.agent, case_id=one.case_id, trial=one.trial)

    trial_view.show(of, found, said)


visitor = gate(Act.READ_EVALS, title="Evals")
with st.container(horizontal=True, vertical_alignment="center"):
    st.title("Evals", width="content")
    st.text(visitor.org_id)
st.caption(
    "How well each agent calls its tools, case by case. Everybody in the cases is invented: no memory's text is here."
)
address.forget_another(visitor.org_id)
recorded = on_record(visitor)
if not recorded:
    nothing(visitor)
else:
    models = models_named(recorded)
    chosen = chosen_from(recorded, models, "Evaluation, newest first (UTC)", "evaluation", recorded[0])
    found = read(visitor, chosen)
    cases_view.head(chosen, found)
    section = address.section(SECTIONS)
    if section == "Two evaluations":
        two(visitor, recorded, models, chosen, found)
    elif section == "Over time":
        drawn = recorded[:NEWEST]
        trend_view.show(chosen, drawn, shares(visitor, drawn), models)
    elif section == "One trial":
        one_trial(visitor, chosen, found)
    else:
        cases_view.show(chosen, found)
with st.expander("What the figures mean", icon=":material/info:"):
    st.markdown(DEFINITIONS)
