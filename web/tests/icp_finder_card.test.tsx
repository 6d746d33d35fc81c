import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { ProfileCard } from "../src/products/icp_finder/profile_card";

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
