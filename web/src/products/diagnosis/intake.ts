// How the diagnosis takes files: as sources of its session.
import { lazy } from "react";
import type { Intake } from "../props";

export const intake: Intake = {
  take: (...given) => void import("./uploads").then(({ add }) => add(...given)),
  View: lazy(() => import("./given")),
};
