// The parts of a message below each other.
import type { ReactNode } from "react";
import { Fold } from "../fold";
import { Text } from "../markdown";
import { Long, Tree } from "../state/tree";
import type { Block, Source } from "./block";
import { safeLink } from "./links";
import { Media } from "./media";
import { w } from "./words";

interface Props {
  blocks: Block[];
  /** Whether the last part still grows. */
  growing: boolean;
  /** How the text of the message is shown, once, in the place of its first text; by default each text as Markdown. */
  answer?: ReactNode;
}

export function Blocks({ blocks, growing, answer }: Props) {
  const first = blocks.findIndex((each) => each.kind === "text");
  return blocks.map((block, i) => {
    const isGrowing = growing && i === blocks.length - 1;
    switch (block.kind) {
      case "text":
        if (answer !== undefined) return i === first ? <div key={i}>{answer}</div> : null;
        return (
          <div key={i} className="stack">
            <Text text={block.text} growing={isGrowing} />
            <Sources sources={block.sources} />
          </div>
        );
      case "reasoning":
        return <Reasoning key={i} text={block.text} growing={isGrowing} />;
      case "other":
        return <Other key={i} type={block.type} value={block.value} />;
      default:
        return <Media key={i} file={block} />;
    }
  });
}

/** Show the parts of a message of a person, or of a tool: text is not Markdown. */
export function PlainBlocks({ blocks }: { blocks: Block[] }) {
  return blocks.map((block, i) => {
    if (block.kind === "text") return <Plain key={i} text={block.text} />;
    if (block.kind === "reasoning") return <Reasoning key={i} text={block.text} growing={false} />;
    return block.kind === "other" ? <Other key={i} type={block.type} value={block.value} /> : <Media key={i} file={block} />;
  });
}

/** Show a text of a tool: JSON as a tree. */
function Plain({ text }: { text: string }) {
  const value = parsed(text);
  return value === undefined ? <pre tabIndex={0}><Long text={text} /></pre> : <Tree value={value} />;
}

// Characters; longer JSON stays text.
const LONGEST = 500_000;

function parsed(text: string): object | undefined {
  if (!/^\s*[[{]/.test(text) || text.length > LONGEST) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function Reasoning({ text, growing }: { text: string; growing: boolean }) {
  return (
    <Fold className="fold reasoning" isOpenFirst={growing} summary={<summary>{w(growing ? "isReasoning" : "reasoning")}</summary>}>
      <Text text={text} growing={growing} />
    </Fold>
  );
}

function Other({ type, value }: { type: string; value: object }) {
  return (
    <Fold className="fold" summary={<summary title={w("part")}><code>{type || "?"}</code></summary>}>
      <Tree value={value} />
    </Fold>
  );
}

function Sources({ sources }: { sources: Source[] }) {
  if (sources.length === 0) return null;
  return (
    <ul className="plain row wrap" aria-label={w("sources")}>
      {sources.map(({ url, title }, i) => (
        <li key={i} className="badge">
          {safeLink(url) === "" ? title : <a href={url} target="_blank" rel="noopener noreferrer">{title}</a>}
        </li>
      ))}
    </ul>
  );
}
