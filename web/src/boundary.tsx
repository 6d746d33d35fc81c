// What is left of the page when a part of it cannot be drawn.
import { Component, type ReactNode } from "react";
import { t, wordsOf } from "./i18n";

const words = wordsOf(
  { broken: "This part of the page cannot be shown. What you have sent is safe." },
  { broken: "Esta parte da página não pode ser mostrada. O que enviou está guardado." },
);

interface Props {
  children: ReactNode;
}

/** Show a part of the page; if drawing it fails, say so in its place, and offer to draw it again. */
export class Boundary extends Component<Props, { isBroken: boolean }> {
  override state = { isBroken: false };

  static getDerivedStateFromError(): { isBroken: boolean } {
    return { isBroken: true };
  }

  override render(): ReactNode {
    if (!this.state.isBroken) return this.props.children;
    return (
      <div className="empty stack" role="alert">
        <p>{words("broken")}</p>
        <p><button onClick={() => this.setState({ isBroken: false })}>{t("retry")}</button></p>
      </div>
    );
  }
}
