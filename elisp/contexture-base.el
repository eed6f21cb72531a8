;;; contexture-base.el --- What calls and commands share  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The options and hooks that concern the server, and the wording of
;; messages.  All of it is loaded with the package; the code that speaks
;; to a server (contexture-call.el) is loaded by the first call.

;;; Code:

(require 'contexture-visible)

(defgroup contexture-rpc nil
  "How Emacs reaches the Contexture server."
  :group 'contexture
  :prefix "contexture-")

(defcustom contexture-reconnect-delay 0.25
  "Seconds to wait before the first attempt to reconnect to a server.
The wait doubles, up to `contexture-reconnect-max-delay', each time an
attempt fails or the server dies before it has answered a call."
  :type 'number)

(defcustom contexture-reconnect-max-delay 30
  "Maximum number of seconds between two attempts to reach the server."
  :type 'number)

(defcustom contexture-resend-limit 10
  "Number of times the server may die during a call before the call fails.
The call that counts is the oldest unanswered one; its error handler is
called.  See `contexture-reconnect-delay' for the time between attempts."
  :type 'natnum)

(defcustom contexture-queue-limit (* 64 1024 1024)
  "Maximum number of characters in all calls that wait for an answer.
Beyond it, new calls are refused until the server has answered others."
  :type 'natnum)

(defcustom contexture-events-buffer-size 0
  "Maximum size, in characters, of the buffer that shows all messages.
These are the messages between Emacs and the server.  If 0, the default,
there is no such buffer."
  :type 'natnum)

(defcustom contexture-secret-file "~/.config/contexture/secret"
  "File whose first line is the secret for a server on another machine.
Emacs sends it to servers that it reaches by TCP, except on this machine."
  :type 'file)

(defvar contexture-connected-hook nil
  "Normal hook run whenever a connection to a server is made, or made again.")

(defconst contexture--version "0.1.0"
  "Version of this package; the server should have the same.")

(defvar contexture-disconnected-hook nil
  "Normal hook run when the server is left or cannot be reached.
It runs after `contexture-disconnect', each time an attempt to connect
fails, and when a connection is lost that nobody needs now.  It does not
run for a connection that is lost and made again at the first attempt.")

(defvar contexture-notification-functions nil
  "Abnormal hook run for each notification from the server.
Each function is called with METHOD, a symbol, and PARAMS, a plist.
Use `contexture-watch' to add one: it also subscribes to notifications.")

(defconst contexture--max-items 1000
  "Largest capacity of a context, in items, that the server allows.")

(defvar contexture--last-replaced 0
  "Number of characters in the last message that could not be sent.")

;;;; Words

(defun contexture--count (number noun &optional plural)
  "Return NUMBER with NOUN, or with PLURAL (default NOUN and s)."
  (format "%d %s" number (if (= number 1) noun (or plural (concat noun "s")))))

(defun contexture--replaced-text (number)
  "Return a phrase for NUMBER of characters that could not be sent."
  (concat (contexture--count number "character that is not text was"
                             "characters that are not text were")
          " replaced by U+FFFD"))

(defun contexture-show-error (problem)
  "Show PROBLEM, the error of a call, in the echo area."
  (contexture--message "Contexture: %s" (contexture--error-text problem)))

(defun contexture--error-text (problem)
  "Return the message for PROBLEM, the error of a call.
If the server suggests a remedy, the message names the command for it."
  (let ((data (plist-get problem :data)))
    (if (eq (plist-get data :kind) :capacity-full)
        (contexture--full-text (plist-get data :count) (plist-get data :tokens)
                               (plist-get data :capacity) (plist-get data :pinned))
      (plist-get problem :message))))

(defun contexture--full-text (files tokens capacity pinned)
  "Return a phrase for a full context.
CAPACITY is how many items it holds, and PINNED how many are pinned.
FILES and TOKENS describe the directory that was to be added; they are
nil for anything else."
  (let ((needed (and files (+ files pinned))))
    (concat
     (if files
         (format "%s (%s) do not fit; the context holds at most %d"
                 (contexture--count files "file") (contexture--count tokens "token")
                 capacity)
       (format "the context is full; it holds at most %d" capacity))
     (if (> pinned 0) (format " (%d pinned)" pinned) "")
     (cond ((and needed (<= needed contexture--max-items))
            (format "; raise the limit to %d or more with M-x contexture-set-capacity, \
or add a listing" needed))
           (files (format ", and no context can hold more than %d; add a smaller \
directory or a listing" contexture--max-items))
           (t "; unpin or remove some, or raise the limit with \
M-x contexture-set-capacity")))))

(defun contexture--problem-text (problem)
  "Return the message for PROBLEM, a condition."
  (pcase problem
    (`(contexture-unreadable ,line)
     (format "ignored a line that is not a message: %s" line))
    (`(contexture-error ,(and (pred stringp) text) . ,_) text)
    (_ (error-message-string problem))))

;;;; Keys

(defun contexture--choose-evil-state (state)
  "With Evil, let buffers of this major mode begin in STATE, an Evil state.
In Evil's normal state, its keys would hide those of a list.  What the
user chose for this mode stays."
  (when (and (fboundp 'evil-initial-state) (fboundp 'evil-set-initial-state)
             (not (evil-initial-state major-mode)))
    (evil-set-initial-state major-mode state)))

;;;; Later

(defun contexture--later (function &rest args)
  "Call FUNCTION with ARGS as soon as Emacs is waiting for input."
  (apply #'run-at-time 0 nil function args))

;;;; Models

(defcustom contexture-providers nil
  "Models to talk to, besides those in the server's configuration file.
Each is (NAME . PLIST).  Emacs sends them to the server each time it
connects, and the server keeps them until it ends.  The plist has

  :kind         openai (or any server with its interface), anthropic,
                gemini, ollama or scripted
  :model        the provider's name for the model
  :base-url     the address, if it is not the usual one of that kind
  :auth-source  t to look the key up with `auth-source' by the host of
                the address, or a plist of :host and :user.
                The key is sent to the server, which keeps it in memory
  :api-key-env  instead, the environment variable of the server that has
                the key
  :api-key-command
                instead, the command that prints the key
  :script       the file with the answers of a scripted provider
  :context      Ollama's context length in tokens; its own default is
                often small
  :answer-tokens
                maximum number of tokens of an answer
  :price-input, :price-output
                price of a million tokens, in any currency
  :default      t to use this model when none is named

`contexture-configure-provider' asks for what is needed of this."
  :type '(alist :key-type (string :tag "Name")
                :value-type (plist :tag "Settings")))

(defvar contexture-providers-hook nil
  "Normal hook run each time the server accepts one of `contexture-providers'.")

;;;; Tools

(declare-function contexture-tools--changed "contexture-tools" ())

(defcustom contexture-tools nil
  "Tools of Emacs that models may call, and where.
Each is (TOOL PLACE).  TOOL is a name, or t for all tools that only read.
PLACE is t for everywhere, (session . ID) or (project . FOLDER).
`contexture-tools-on' and `contexture-tools-off' change this for the
running Emacs."
  :type '(repeat (list (choice (const :tag "All that only read" t)
                               (string :tag "Name"))
                       (choice (const :tag "Everywhere" t)
                               (cons :tag "Session" (const session) (string :tag "Id"))
                               (cons :tag "Project" (const project) directory))))
  :set (lambda (option value)
         (set-default option value)
         (when (featurep 'contexture-tools)
           (contexture-tools--changed))))

(provide 'contexture-base)
;;; contexture-base.el ends here
