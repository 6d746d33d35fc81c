// What the tutor keeps about the learner: see it, change it, erase it.
import { useState } from "react";
import { useWork } from "../../use_work";
import { Mistakes } from "./mistakes";
import * as requests from "./requests";
import { Trouble } from "./trouble";
import { useLoaded } from "./use_loaded";
import { w } from "./words";

const LEVELS = ["A1", "A2", "B1", "B2", "C1", "C2"];

export function Profile({ version }: { version: number }) {
  const { value, problem, reload } = useLoaded(requests.profile, version);
  return (
    <section className="card stack" aria-label={w("profile")}>
      <p className="hint">{w("kept")}</p>
      <Trouble problem={problem} onAgain={() => void reload()} />
      {value === null && problem === null && <p role="status">{w("loading")} …</p>}
      {value !== null && (
        <>
          <About key={`${value.level}-${value.native_language}`} profile={value} onSaved={reload} />
          <Mistakes mistakes={value.mistakes} onChange={reload} />
          <Erase onErased={reload} />
        </>
      )}
    </section>
  );
}

function About({ profile, onSaved }: { profile: requests.Profile; onSaved: () => Promise<void> }) {
  const [level, setLevel] = useState(profile.level ?? "");
  const [native, setNative] = useState(profile.native_language ?? "");
  const { isWorking, problem, act } = useWork();
  const values = { level: level === "" ? null : level, native_language: native.trim() === "" ? null : native.trim() };
  const isSame = values.level === profile.level && values.native_language === profile.native_language;
  const save = () => act(async () => {
    await requests.change(values);
    await onSaved();
  });
  return (
    <form className="stack" onSubmit={(event) => { event.preventDefault(); if (!isSame) void save(); }}>
      <div className="row wrap tutor-about">
        <label className="field">
          <span>{w("level")}</span>
          <select value={level} onChange={(event) => setLevel(event.target.value)}>
            <option value="">{w("unknown")}</option>
            {LEVELS.map((each) => <option key={each}>{each}</option>)}
          </select>
        </label>
        <label className="field grow">
          <span>{w("nativeLanguage")}</span>
          <input value={native} placeholder={w("unknown")} maxLength={40} title={w("languageHint")}
            pattern="\p{L}[\p{L}_]*([ \-]+\p{L}+)*" onChange={(event) => setNative(event.target.value)} />
        </label>
        <button className="primary" disabled={isWorking || isSame}>{w("save")}</button>
      </div>
      <Trouble problem={problem} />
    </form>
  );
}

function Erase({ onErased }: { onErased: () => Promise<void> }) {
  const [isAsking, setAsking] = useState(false);
  const [isDone, setDone] = useState(false);
  const { isWorking, problem, act } = useWork();
  const erase = () => act(async () => {
    await requests.erase();
    setAsking(false);
    setDone(true);
    await onErased();
  });
  return (
    <>
      <Trouble problem={problem} />
      {isDone && <p role="status">{w("erased")}</p>}
      {isAsking ? (
        <div role="alertdialog" aria-label={w("eraseAll")} className="stack">
          <p>{w("reallyErase")}</p>
          <div className="actions">
            <button className="danger" disabled={isWorking} onClick={() => void erase()}>{w("erase")}</button>
            <button autoFocus onClick={() => setAsking(false)}>{w("cancel")}</button>
          </div>
        </div>
      ) : (
        <button className="small danger tutor-erase" onClick={() => { setDone(false); setAsking(true); }}>{w("eraseAll")}</button>
      )}
    </>
  );
}
