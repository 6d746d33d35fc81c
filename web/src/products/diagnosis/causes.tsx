// The tree of hypotheses with their tests and evidence.
import { useState, type CSSProperties } from "react";
import type { Evidence, Hypothesis, State, Test } from "./client";
import { EvidenceDrawer } from "./evidence";
import { testName, w } from "./words";

export interface Branch { id: string; hypothesis: Hypothesis; children: Branch[] }

/** Return the hypotheses as a tree, the most likely first. */
export function tree(hypotheses: Record<string, Hypothesis>, parent: string | null = null): Branch[] {
  return Object.entries(hypotheses)
    .filter(([, each]) => each.parent === parent)
    .sort(([, a], [, b]) => b.confidence - a.confidence || a.seq - b.seq)
    .map(([id, hypothesis]) => ({ id, hypothesis, children: tree(hypotheses, id) }));
}

interface Props { id: string; state: State }

export function Causes({ id, state }: Props) {
  const [open, setOpen] = useState<Evidence | null>(null);
  const branches = tree(state.hypotheses);
  if (branches.length === 0) return <p className="hint">{w("noCauses")}</p>;
  const source = open === null ? undefined : state.sources[open.source];
  return (
    <>
      <Branches branches={branches} leading={state.leading} state={state} onOpen={setOpen} />
      {open !== null && <EvidenceDrawer id={id} evidence={open} source={source} onClose={() => setOpen(null)} />}
    </>
  );
}

interface BranchesProps { branches: Branch[]; leading: string | null; state: State; onOpen: (evidence: Evidence) => void }

function Branches({ branches, leading, state, onOpen }: BranchesProps) {
  return (
    <ul className="plain stack causes">
      {branches.map((each) => (
        <li key={each.id}>
          <Cause branch={each} isLeading={each.id === leading} state={state} onOpen={onOpen} />
          {each.children.length > 0 && (
            <Branches branches={each.children} leading={leading} state={state} onOpen={onOpen} />
          )}
        </li>
      ))}
    </ul>
  );
}

interface CauseProps { branch: Branch; isLeading: boolean; state: State; onOpen: (evidence: Evidence) => void }

function Cause({ branch, isLeading, state, onOpen }: CauseProps) {
  const { hypothesis } = branch;
  const share = Math.round(hypothesis.confidence * 100);
  return (
    <details className={`card cause ${hypothesis.status}`} open={isLeading}>
      <summary>
        <span className="statement">{hypothesis.statement}</span>
        <span className="row wrap">
          <span className={BADGES[hypothesis.status] ?? "badge"}>{w(hypothesis.status)}</span>
          {isLeading && <span className="badge">{w("leading")}</span>}
          {hypothesis.by === "model" && <span className="badge">{w("byModel")}</span>}
          <span className="meta">{w("confidence")} {share} %</span>
        </span>
        <i className="bar" style={{ "--part": hypothesis.confidence } as CSSProperties} />
      </summary>
      <ul className="plain stack tests" aria-label={w("tests")}>
        {Object.entries(hypothesis.tests).map(([name, test]) => (
          <TestRow key={name} name={name} test={test} state={state} onOpen={onOpen} />
        ))}
      </ul>
    </details>
  );
}

const BADGES: Record<string, string> = { supported: "badge good", refuted: "badge bad" };
const SIGNS = { passed: "✓", failed: "✕", unclear: "?" };

interface TestProps { name: string; test: Test; state: State; onOpen: (evidence: Evidence) => void }

function TestRow({ name, test, state, onOpen }: TestProps) {
  return (
    <li className={test.outcome}>
      <span className="sign" aria-hidden="true">{SIGNS[test.outcome]}</span>
      <div>
        <span className="name">{testName(name)}</span> <span className="meta">{w(test.outcome)}</span>
        {test.reason !== "" && <div className="meta">{test.reason}</div>}
        {test.evidence.map((each) => (
          <button key={each.observation} className={`evidence ${each.direction}`} onClick={() => onOpen(each)}>
            <span className="meta">{w(each.direction)} · {state.sources[each.source]?.name ?? ""}</span>
            <code>{each.quote}</code>
          </button>
        ))}
      </div>
    </li>
  );
}
