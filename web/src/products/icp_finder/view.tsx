// What a thread of the ICP finder knows: the profile and the candidates.
import type { Fields } from "../../api";
import { explain } from "../../problems";
import type { ViewProps } from "../props";
import { numbersOf } from "./candidate";
import { Candidates } from "./candidates";
import { profileOf } from "./profile";
import { ProfileCard } from "./profile_card";
import "./styles.css";
import { useFound } from "./use_found";
import { useNarrow } from "./use_narrow";
import { w } from "./words";

export default function View({ threadId, values, isBusy, readOnly, say }: ViewProps) {
  const profile = profileOf(values.icp);
  const last = values.last as Fields | null | undefined;
  const { found, problem, reload, setFound } = useFound(threadId, String(last?.icp_hash), isBusy);
  const isNarrow = useNarrow();
  const isConfirmed = values.confirmed === true;
  const isEmpty = found === null || (found.candidates.length === 0 && found.rejected.length === 0);
  // On a phone, the list that a question is about would be out of sight below a profile that is agreed.
  const isListFirst = isNarrow && isConfirmed && !isEmpty;
  const card = profile !== null && (
    <ProfileCard key="profile" profile={profile} site={domainOf(values.site)} customers={domainsOf(values.customers)}
      isConfirmed={isConfirmed} isBusy={isBusy} readOnly={readOnly} say={say} />
  );
  return (
    <section className="panel">
      {!isListFirst && card}
      {problem !== null && (
        <p className="alert row wrap" role="alert">
          <span className="grow">{w("failedToLoad")} {explain(problem)}</span>
          <button className="small" onClick={reload}>{w("again")}</button>
        </p>
      )}
      {found === null && problem === null && last && <p className="hint" role="status">{w("loading")} …</p>}
      {profile !== null && found !== null && isEmpty && <p className="hint">{w("none")}</p>}
      {found !== null && !isEmpty && (
        <Candidates threadId={threadId} found={found} numbers={numbersOf(values.view)} readOnly={readOnly} onChange={setFound} />
      )}
      {isListFirst && card}
    </section>
  );
}

function domainOf(site: unknown): string | null {
  const domain = (site as Fields | null | undefined)?.domain;
  return typeof domain === "string" ? domain : null;
}

function domainsOf(sites: unknown): string[] {
  return Array.isArray(sites) ? sites.map(domainOf).filter((each) => each !== null) : [];
}
