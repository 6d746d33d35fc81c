// A call of a tool: one line, and behind it the arguments and the result.
import { Fold } from "../fold";
import { Icon } from "../icon";
import { brief, Tree } from "../state/tree";
import type { Block } from "./block";
import { PlainBlocks } from "./blocks";
import type { ToolCall } from "./call";
import { w } from "./words";

interface Props {
  call: ToolCall;
  /** Whether the run goes on, so that a result may come. */
  isBusy: boolean;
}

export function Tool({ call, isBusy }: Props) {
  const { name, args, result } = call;
  const verb = result !== undefined ? "used" : isBusy ? "using" : "asked";
  const summary = (
    <summary>
      {result === undefined && isBusy && <i className="dot busy" />}
      <span className="verb">{w(verb)} <code translate="no">{name || "?"}</code></span>
      <span className="meta clip grow" dir="auto">{brief(args)}</span>
      {result?.isError === true && <Problem name={name} blocks={result.blocks} />}
    </summary>
  );
  return (
    <Fold className="fold tool" summary={summary}>
      <div className="stack">
        <Arguments args={args} />
        {result !== undefined && <Result blocks={result.blocks} />}
      </div>
    </Fold>
  );
}

/** Say that a call has failed, or that a person has rejected it: LangChain's middleware writes this in place of a result. */
function Problem({ name, blocks }: { name: string; blocks: Block[] }) {
  const isRejected = blocks[0]?.kind === "text" && blocks[0].text.startsWith(`User rejected the tool call for \`${name}\` with `);
  return isRejected ? <span className="badge warn">{w("rejected")}</span> : <span className="badge bad">{w("failed")}</span>;
}

function Arguments({ args }: { args: ToolCall["args"] }) {
  const isEmpty = typeof args === "string" ? args === "" : Object.keys(args).length === 0;
  if (isEmpty) return <p className="meta">{w("noArguments")}</p>;
  return (
    <section className="stack tight">
      <h4 className="label">{w("arguments")}</h4>
      {typeof args === "string" ? <pre tabIndex={0}>{args}</pre> : <Tree value={args} />}
    </section>
  );
}

function Result({ blocks }: { blocks: Block[] }) {
  return (
    <section className="stack tight">
      <h4 className="label">{w("result")}</h4>
      {blocks.length === 0 ? <p className="meta">{w("noResult")}</p> : <PlainBlocks blocks={blocks} />}
    </section>
  );
}

/** The result of a tool whose call is not among the messages. */
export function LoneResult({ name, blocks, isError }: { name: string; blocks: Block[]; isError: boolean }) {
  return (
    <details className="fold tool">
      <summary>
        <Icon name="check" size={14} />
        <span className="verb grow">{w("result")} <code translate="no">{name || "?"}</code></span>
        {isError && <Problem name={name} blocks={blocks} />}
      </summary>
      <Result blocks={blocks} />
    </details>
  );
}
