import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { CandidateRow } from "../src/products/icp_finder/candidate_row";
import { ProfileCard } from "../src/products/icp_finder/profile_card";
import Question from "../src/products/icp_finder/question";

afterEach(cleanup);

const card = (isConfirmed: boolean) => (
  <ProfileCard
    profile={{ industries: ["Wholesale"], regions: [], sizes: [], keywords: [], exclusions: [] }}
    site="acme.com" customers={["one.com"]} isConfirmed={isConfirmed} isBusy={false} readOnly={false}
    say={() => Promise.resolve(true)}
  />
);

it("makes room for the candidates once the profile is confirmed", () => {
  const { rerender } = render(card(false));
  expect(screen.queryByText("one.com")).not.toBeNull();
  rerender(card(true));
  expect(screen.queryByText("one.com")).toBeNull();
  expect(screen.queryByText("Wholesale")).not.toBeNull();
});

it("stays as the person has left it", () => {
  const { rerender } = render(card(false));
  fireEvent.click(screen.getByText("Less"));
  fireEvent.click(screen.getByText("Details"));
  rerender(card(true));
  expect(screen.queryByText("one.com")).not.toBeNull();
});

const ask = (kind: string, labels: Record<string, string>, more: object = {}) => {
  const options = Object.entries(labels).map(([value, label]) => ({ value, label }));
  const onAnswer = vi.fn(() => Promise.resolve(true));
  const onStarted = vi.fn();
  const value = { id: "q", kind, question: "?", options, details: {} };
  render(<Question threadId="t" value={value} hasComposer={false} onAnswer={onAnswer} onStarted={onStarted} {...more} />);
  return { onAnswer, onStarted };
};

it("answers with the label that the person has pressed", () => {
  const { onAnswer } = ask("enrich", { enrich: "Read them", later: "Not now" });
  expect(screen.getByText("Read them").className).toBe("primary");
  fireEvent.click(screen.getByText("Read them"));
  expect(onAnswer).toHaveBeenCalledWith({ choice: "enrich", question: "q", label: "Read them" });
});

it("favours no answer to whose a website is", () => {
  ask("domain", { ours: "Our own website", mention: "None of these" });
  expect(document.querySelector(".primary")).toBeNull();
});

it("has a field for an answer only where no composer is", () => {
  ask("enrich", { enrich: "Read them" }, { hasComposer: true });
  expect(screen.queryByRole("textbox")).toBeNull();
  cleanup();
  ask("enrich", { enrich: "Read them" });
  expect(screen.queryByRole("textbox")).not.toBeNull();
});

it("shows the number of a candidate that commands use, and none of another", () => {
  const candidate = {
    key: "a", name: "Amber", score: 1, region: "", industry: "", source: "web", website: null, evidence: [], parts: {},
    enrichment: { status: null, note: null, about: null, size: null, emails: [], phones: [], pages: [] }, verdict: null, reason: "",
  };
  const row = (number?: number) => <CandidateRow candidate={candidate} number={number} pending={null} readOnly onDecide={() => undefined} />;
  const { rerender, container } = render(row(2));
  expect(container.querySelector(".icp-name")?.textContent).toBe("Number 2.Amber");
  rerender(row());
  expect(container.querySelector(".icp-name")?.textContent).toBe("Amber");
});
