// Words of the shell, in English and Portuguese. A product has its own, by `wordsOf`.

const en = {
  // Sidebar
  menu: "Conversations",
  newThread: "New conversation",
  inbox: "Inbox",
  search: "Search conversations",
  showArchived: "Show archived",
  noThreads: "No conversations yet. Choose an assistant and write a message.",
  noneShown: "All conversations are archived.",
  noMatch: "No conversation has these words.",
  looking: "Looking in the conversations...",
  options: "Options",
  rename: "Rename",
  archive: "Archive",
  unarchive: "Restore",
  delete: "Delete",
  reallyDelete: "Delete this conversation? It cannot be undone.",
  language: "Language",
  signOut: "Sign out",
  busy: "Answering",
  unseen: "New",
  interrupted: "Waits for you",
  error: "Failed",
  archived: "Archived",
  loadMore: "Load older conversations",
  // Words of several places
  save: "Save",
  cancel: "Cancel",
  close: "Close",
  open: "Open",
  retry: "Try again",
  loading: "Loading",
  done: "done",
  of: "of",
  more: "more",
  by: "by",
  // Sign-in
  token: "Token",
  signIn: "Sign in",
  signInHelp: "This server needs a token. Paste yours. The page forgets it when you close the tab.",
  refused: "The server refuses this token. It may be wrong or too old. Paste another one.",
  // Start
  start: "What do you want to do?",
  noSuchAssistant: "This server has no assistant of this name:",
  noAssistants: "This server has no assistants. Name a graph in langgraph.json.",
  back: "All assistants",
  // Conversation
  skip: "Skip to the conversation",
  empty: "Write the first message. The answer appears here.",
  you: "You",
  assistant: "Assistant",
  message: "Message",
  placeholder: "Write a message",
  placeholderAnswer: "Write your answer",
  placeholderBusy: "Write the next message",
  send: "Send",
  stop: "Stop",
  attach: "Attach a file",
  detach: "Remove",
  edit: "Edit",
  copy: "Copy",
  copied: "Copied",
  regenerate: "Answer again",
  versions: "Version",
  previous: "Previous version",
  next: "Next version",
  thinking: "The assistant is answering",
  toEnd: "To the end",
  stopped: "Stopped. The answer is not complete.",
  proceed: "Continue",
  paused: "Paused before:",
  waitingRuns: "Next, when the answer is complete or stopped",
  withdraw: "Withdraw",
  readOnly: "Read-only",
  locked: "This conversation is closed. You can read it.",
  lockedDraft: "This conversation is closed. Your text is kept: it goes with you to the new conversation.",
  resumeNew: "Resume in new thread",
  // Questions
  question: "A question for you",
  answer: "Answer",
  other: "Your own answer",
  answered: "answered",
  noInbox: "Nothing waits for you. When an assistant asks something, the question appears here.",
  answeredBefore: "Answered lately",
  gone: "This conversation does not exist, or it belongs to another user.",
  // Problems
  offline: "The server does not answer. Check that it runs. The page tries again by itself.",
  lost: "The connection was lost. What you wrote is kept.",
  reconnect: "Reconnect",
  tooMany: "Too many requests. Wait a moment, then try again.",
  tooLarge: "The message is too large for this server. Make it shorter.",
  forbidden: "You may not do this. Ask an administrator for the role.",
  conflict: "Something else changed this conversation. Look at it again, then try again.",
  alreadyAnswered: "This question was answered already.",
  broken: "The server failed. Try again. If it fails again, its log has the cause.",
  unfinished: "This answer is not complete.",
  failed: "The run failed.",
  tryAgain: "Try again.",
  cause: "What the graph said",
  notAccepted: "The server did not accept this:",
};

export type Word = keyof typeof en;

const pt: Record<Word, string> = {
  menu: "Conversas",
  newThread: "Nova conversa",
  inbox: "Perguntas",
  search: "Procurar conversas",
  showArchived: "Mostrar arquivadas",
  noThreads: "Ainda não há conversas. Escolha um assistente e escreva uma mensagem.",
  noneShown: "Todas as conversas estão arquivadas.",
  noMatch: "Nenhuma conversa tem estas palavras.",
  looking: "A procurar nas conversas...",
  options: "Opções",
  rename: "Mudar o nome",
  archive: "Arquivar",
  unarchive: "Restaurar",
  delete: "Apagar",
  reallyDelete: "Apagar esta conversa? Não é possível desfazer.",
  language: "Idioma",
  signOut: "Sair",
  busy: "A responder",
  unseen: "Novo",
  interrupted: "Espera por si",
  error: "Falhou",
  archived: "Arquivada",
  loadMore: "Carregar conversas mais antigas",
  save: "Guardar",
  cancel: "Cancelar",
  close: "Fechar",
  open: "Abrir",
  retry: "Tentar de novo",
  loading: "A carregar",
  done: "prontas",
  of: "de",
  more: "mais",
  by: "por",
  token: "Token",
  signIn: "Entrar",
  signInHelp: "Este servidor precisa de um token. Cole o seu. A página esquece-o quando fechar o separador.",
  refused: "O servidor recusa este token. Pode estar errado ou ser antigo. Cole outro.",
  start: "O que quer fazer?",
  noSuchAssistant: "Este servidor não tem um assistente com este nome:",
  noAssistants: "Este servidor não tem assistentes. Indique um grafo em langgraph.json.",
  back: "Todos os assistentes",
  skip: "Ir para a conversa",
  empty: "Escreva a primeira mensagem. A resposta aparece aqui.",
  you: "Você",
  assistant: "Assistente",
  message: "Mensagem",
  placeholder: "Escreva uma mensagem",
  placeholderAnswer: "Escreva a sua resposta",
  placeholderBusy: "Escreva a próxima mensagem",
  send: "Enviar",
  stop: "Parar",
  attach: "Juntar um ficheiro",
  detach: "Remover",
  edit: "Editar",
  copy: "Copiar",
  copied: "Copiado",
  regenerate: "Responder de novo",
  versions: "Versão",
  previous: "Versão anterior",
  next: "Versão seguinte",
  thinking: "O assistente está a responder",
  toEnd: "Para o fim",
  stopped: "Parado. A resposta não está completa.",
  proceed: "Continuar",
  paused: "Em pausa antes de:",
  waitingRuns: "A seguir, quando a resposta acabar ou for parada",
  withdraw: "Retirar",
  readOnly: "Só leitura",
  locked: "Esta conversa está fechada. Pode lê-la.",
  lockedDraft: "Esta conversa está fechada. O seu texto não se perde: vai consigo para a conversa nova.",
  resumeNew: "Continuar numa conversa nova",
  question: "Uma pergunta para si",
  answer: "Responder",
  other: "A sua própria resposta",
  answered: "respondida",
  noInbox: "Nada espera por si. Quando um assistente perguntar algo, a pergunta aparece aqui.",
  answeredBefore: "Respondidas há pouco",
  gone: "Esta conversa não existe ou é de outro utilizador.",
  offline: "O servidor não responde. Veja se está a correr. A página tenta de novo sozinha.",
  lost: "A ligação caiu. O que escreveu não se perdeu.",
  reconnect: "Ligar de novo",
  tooMany: "Demasiados pedidos. Espere um momento e tente de novo.",
  tooLarge: "A mensagem é demasiado grande para este servidor. Encurte-a.",
  forbidden: "Não pode fazer isto. Peça a permissão a um administrador.",
  conflict: "Algo mudou esta conversa entretanto. Veja-a e tente de novo.",
  alreadyAnswered: "Esta pergunta já foi respondida.",
  broken: "O servidor falhou. Tente de novo. Se falhar outra vez, a causa está no registo do servidor.",
  unfinished: "Esta resposta não está completa.",
  failed: "A execução falhou.",
  tryAgain: "Tente de novo.",
  cause: "O que o grafo disse",
  notAccepted: "O servidor não aceitou isto:",
};

export const languages = { en: "English", pt: "Português" } as const;
export type Language = keyof typeof languages;

const KEY = "threadhold-language";

export function language(): Language {
  const chosen = localStorage.getItem(KEY) ?? navigator.language.slice(0, 2);
  return chosen === "pt" ? "pt" : "en";
}

export function setLanguage(value: Language): void {
  localStorage.setItem(KEY, value);
}

/** Return how to write dates and numbers: in the language of the page, as the browser's country does. */
export function locale(): string {
  // A browser may name a country in a way that is no language tag, such as `en-US@posix`.
  return navigator.languages.find((each) => /^[a-z]{2}(-[A-Za-z]{2,4})*$/.test(each) && each.startsWith(language())) ?? language();
}

export const words = { en, pt };

export function t(word: Word): string {
  return words[language()][word];
}

/** Return the words of a product, in the language of the page. */
export function wordsOf<W extends string>(
  english: Record<W, string>,
  portuguese: Record<W, string>,
): (word: W) => string {
  return (word) => (language() === "pt" ? portuguese : english)[word];
}

/** Write a time with its day, such as "27 Nov, 19:44". */
export function moment(iso: string): string {
  const format = new Intl.DateTimeFormat(locale(), { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  return format.format(new Date(iso));
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86400], ["hour", 3600], ["minute", 60]];

/** Say a time in words, such as "3 minutes ago". */
export function ago(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, size] of UNITS) {
    if (-seconds >= size) return format.format(Math.ceil(seconds / size), unit);
  }
  return format.format(0, "minute");
}
