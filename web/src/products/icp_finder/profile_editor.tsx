// Edit the profile, look at what would change, and ask the finder for it.
import { useId, useState } from "react";
import { changesOf, messageOf, refusedOf, SIZES, valuesOf, type Change, type Field, type Profile } from "./profile";
import { w } from "./words";

interface Props {
  profile: Profile;
  isBusy: boolean;
  say: (text: string) => Promise<boolean>;
  onClose: () => void;
}

type Texts = Record<(typeof TEXTS)[number], string>;

const TEXTS = ["industries", "regions", "keywords", "exclusions"] as const;

export function ProfileEditor({ profile, isBusy, say, onClose }: Props) {
  const [texts, setTexts] = useState<Texts>({
    industries: profile.industries.join("\n"),
    regions: profile.regions.join("\n"),
    keywords: profile.keywords.join("\n"),
    exclusions: profile.exclusions.join("\n"),
  });
  const [sizes, setSizes] = useState(profile.sizes);
  const [isReviewing, setReviewing] = useState(false);
  const after: Profile = {
    industries: valuesOf(texts.industries), regions: valuesOf(texts.regions), keywords: valuesOf(texts.keywords),
    exclusions: valuesOf(texts.exclusions),
    sizes: SIZES.filter((each) => sizes.includes(each)),
  };
  const changes = changesOf(profile, after);
  if (isReviewing) {
    return (
      <Review changes={changes} isBusy={isBusy} onBack={() => setReviewing(false)}
        onSend={async () => {
          if (await say(messageOf(changes))) onClose();
        }} />
    );
  }
  const refused = TEXTS.map((field) => refusedOf(after[field])).find((each) => each !== null);
  return (
    <form className="stack" onSubmit={(event) => {
      event.preventDefault();
      if (refused === undefined) setReviewing(true);
    }}>
      {TEXTS.map((field) => (
        <Lines key={field} field={field} text={texts[field]}
          onChange={(text) => setTexts({ ...texts, [field]: text })} />
      ))}
      <Sizes chosen={sizes} onChange={setSizes} />
      {refused !== undefined && <p className="alert" role="alert">{w("tooMany")} {refused}</p>}
      <div className="actions">
        <button className="primary" disabled={refused !== undefined}>{w("review")}</button>
        <button type="button" onClick={onClose}>{w("keep")}</button>
      </div>
    </form>
  );
}

function Lines({ field, text, onChange }: { field: Field; text: string; onChange: (text: string) => void }) {
  const id = useId();
  return (
    <div className="field">
      <label className="label" htmlFor={id}>{w(field)} <span className="meta">{w("oneEach")}</span></label>
      <textarea id={id} rows={Math.min(Math.max(text.split("\n").length, 2), 8)} value={text}
        onChange={(event) => onChange(event.target.value)} />
    </div>
  );
}

function Sizes({ chosen, onChange }: { chosen: string[]; onChange: (sizes: string[]) => void }) {
  return (
    <fieldset className="field">
      <legend>{w("sizes")}</legend>
      <div className="row wrap">
        {SIZES.map((size) => (
          <label key={size} className="row">
            <input type="checkbox" checked={chosen.includes(size)}
              onChange={() => onChange(chosen.includes(size) ? chosen.filter((each) => each !== size) : [...chosen, size])} />
            {size}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface ReviewProps { changes: Change[]; isBusy: boolean; onBack: () => void; onSend: () => Promise<void> }

function Review({ changes, isBusy, onBack, onSend }: ReviewProps) {
  const [isSending, setSending] = useState(false);
  const send = async () => {
    setSending(true);
    await onSend();
    setSending(false);
  };
  return (
    <div className="stack icp-review" role="group" aria-label={w("review")}>
      {changes.length === 0 && <p>{w("nothing")}</p>}
      <dl>{changes.map((each) => <Difference key={each.field} change={each} />)}</dl>
      {changes.length > 0 && <p className="hint">{w(isBusy ? "waits" : "diffHint")}</p>}
      <div className="actions">
        {changes.length > 0 && (
          <button className="primary" disabled={isSending || isBusy} onClick={() => void send()}>
            {w(isSending ? "sending" : "ask")}
          </button>
        )}
        <button autoFocus disabled={isSending} onClick={onBack}>{w("back")}</button>
      </div>
    </div>
  );
}

function Difference({ change }: { change: Change }) {
  return (
    <div>
      <dt>{w(change.field)}</dt>
      <dd>
        <ul className="plain tags">
          {change.removed.map((each) => (
            <li key={each}><span className="hidden">{w("removed")}: </span><del>{each}</del></li>
          ))}
          {change.added.map((each) => (
            <li key={each}><span className="hidden">{w("added")}: </span><ins>{each}</ins></li>
          ))}
          {change.after.length === 0 && <li>{w("any")}</li>}
        </ul>
      </dd>
    </div>
  );
}
