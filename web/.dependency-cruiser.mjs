// `npm run lint` checks these rules of imports.
export default {
  forbidden: [
    {
      name: "no-circles",
      comment: "Move what both modules need into a third one. Imports of types and lazy ones count, too.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
  ],
  options: { doNotFollow: { path: "node_modules" }, tsPreCompilationDeps: true, tsConfig: { fileName: "tsconfig.json" } },
};
