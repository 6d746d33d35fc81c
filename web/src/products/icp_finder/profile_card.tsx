// The ideal customer profile as a card, and its editor.
import { useState } from "react";
import { textsOf } from "./fields";
import { FIELDS, type Profile } from "./profile";
import { ProfileEditor } from "./profile_editor";
import { w } from "./words";

interface Props {
  profile: Profile;
  site: string | null;
  customers: string[];
  isConfirmed: boolean;
  isBusy: boolean;
  readOnly: boolean;
  say: (text: string) => Promise<boolean>;
}

export function ProfileCard({ profile, site, customers, isConfirmed, isBusy, readOnly, say }: Props) {
  const [isEditing, setEditing] = useState(false);
  // Until the person chooses, all of it is shown while it waits for a yes.
  const [chosen, setOpen] = useState<boolean | null>(null);
  const isOpen = chosen ?? !isConfirmed;
  return (
    <section className="card stack icp-profile" aria-label={w("profile")}>
      <header className="row wrap">
        <h2>{w("profile")}</h2>
        <span className={isConfirmed ? "badge good" : "badge warn"}>{w(isConfirmed ? "confirmed" : "proposed")}</span>
        <span className="grow" />
        {!isEditing && (
          <button className="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{w(isOpen ? "less" : "details")}</button>
        )}
        {!readOnly && !isEditing && (
          <button className="small" onClick={() => setEditing(true)}>{w("change")}</button>
        )}
      </header>
      {isEditing && !readOnly ? (
        <ProfileEditor profile={profile} isBusy={isBusy} say={say} onClose={() => setEditing(false)} />
      ) : (
        <dl>
          {isOpen && site !== null && <Line name={w("company")} values={[site]} />}
          {isOpen && customers.length > 0 && <Line name={w("customers")} values={customers} />}
          {FIELDS.filter((field) => isOpen || profile[field].length > 0).map((field) => (
            <Line key={field} name={w(field)} values={profile[field]} none={w(field === "exclusions" ? "nobody" : "any")} />
          ))}
        </dl>
      )}
    </section>
  );
}

function Line({ name, values, none = w("any") }: { name: string; values: string[]; none?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{values.length === 0 ? <span className="hint">{none}</span> : textsOf(values)}</dd>
    </div>
  );
}
