// In place of `langsmith`: the names that the SDK imports, which do nothing without tracing.
export class Client {}
export class RunTree {}
export const isRunTree = (): boolean => false;
export const isTraceableFunction = (): boolean => false;
export const getCurrentRunTree = (): undefined => undefined;
export const convertToDottedOrderFormat = (): never => {
  throw new Error("tracing is not part of this page");
};
export const getDefaultProjectName = (): string => "default";
export const overrideFetchImplementation = (): void => undefined;
export { v7 as uuid7 } from "uuid";
