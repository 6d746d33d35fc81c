// The learner's summary, practice and profile, below the conversation.
import { useEffect, useId, useRef, useState } from "react";
import { go } from "../../route";
import type { ViewProps } from "../props";
import { forget, keep } from "./kept";
import { Practice } from "./practice";
import { Profile } from "./profile";
import "./styles.css";
import { SummaryOf } from "./summary";
import { w } from "./words";

const PANELS = ["summary", "practice", "profile"] as const;

type Panel = (typeof PANELS)[number];

export default function View({ values, threadId }: ViewProps) {
  const [open, setOpen] = useState<Panel | null>(null);
  const id = useId();
  useEffect(() => keep(threadId), [threadId]);
  const panel = useRef<HTMLDivElement>(null);
  // A panel that opens below the fold would look like a button that does nothing.
  useEffect(() => {
    if (open !== null) panel.current?.scrollIntoView({ block: "nearest" });
  }, [open]);
  const corrections = Array.isArray(values.corrections) ? values.corrections.length : 0;
  return (
    <section className="panel tutor" aria-label={w("tools")}>
      <div className="row wrap tutor-tools">
        {PANELS.map((each) => (
          <button className="small" key={each} aria-expanded={open === each} aria-controls={id}
            onClick={() => setOpen(open === each ? null : each)}>
            {w(each)}
          </button>
        ))}
        <span className="grow" />
        <button className="small quiet" onClick={() => { forget(); go({ assistant: "tutor" }); }}>{w("newConversation")}</button>
      </div>
      <div id={id} ref={panel} className="tutor-open">
        {open === "summary" && <SummaryOf threadId={threadId} version={corrections} />}
        {open === "practice" && <Practice />}
        {open === "profile" && <Profile version={corrections} />}
      </div>
    </section>
  );
}
