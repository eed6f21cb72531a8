;;; contexture-base.el --- What calls and commands share  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The options about the server, the hooks that tell of it, and the words
;; for what happens.  All of it is known as soon as the package is
;; loaded, while the code that speaks to a server (contexture-call.el)
;; is loaded by the first call.

;;; Code:

(require 'contexture-visible)

(defgroup contexture-rpc nil
  "How Emacs reaches the Contexture server."
  :group 'contexture
  :prefix "contexture-")

(defcustom contexture-reconnect-delay 0.25
  "Seconds before the first attempt to reach a server that went away.
Each attempt that fails, or after which the server dies before it has
answered a call, doubles it, up to `contexture-reconnect-max-delay'."
  :type 'number)

(defcustom contexture-reconnect-max-delay 30
  "Most seconds between two attempts to reach the server."
  :type 'number)

(defcustom contexture-resend-limit 10
  "How often the server may die at one call before that is given up.
The call in question is the oldest unanswered one, and its error
handler is told.  The attempts are further and further apart, see
`contexture-reconnect-delay'."
  :type 'natnum)

(defcustom contexture-queue-limit (* 64 1024 1024)
  "Most characters of calls that may wait for an answer.
Beyond it new calls are refused: the server is not keeping up."
  :type 'natnum)

(defcustom contexture-events-buffer-size 0
  "Most characters in the buffer that shows all messages; 0 turns it off."
  :type 'natnum)

(defcustom contexture-secret-file "~/.config/contexture/secret"
  "File whose first line is sent first to a server on another machine."
  :type 'file)

(defvar contexture-connected-hook nil
  "Normal hook run when a server has been reached, also for a second time.")

(defvar contexture-disconnected-hook nil
  "Normal hook run when the server was left, or could not be reached again.")

(defvar contexture-notification-functions nil
  "Abnormal hook for what the server says unasked.
Each function is called with METHOD, a symbol, and PARAMS, a plist.
Use `contexture-watch' to add one: it makes the server speak.")

(defconst contexture--max-items 1000
  "The largest capacity of a context that the server allows.")

(defvar contexture--last-replaced 0
  "How many characters of the last message were no text.")

;;;; Words

(defun contexture--count (number noun &optional plural)
  "Return NUMBER with NOUN, or with PLURAL (default NOUN and s)."
  (format "%d %s" number (if (= number 1) noun (or plural (concat noun "s")))))

(defun contexture--replaced-text (number)
  "Return words for NUMBER of characters that could not be sent."
  (concat (contexture--count number "character that is no text was"
                             "characters that are no text were")
          " replaced by U+FFFD"))

(defun contexture-show-error (problem)
  "Show PROBLEM, the error of a call, in the echo area."
  (contexture--message "Contexture: %s" (contexture--error-text problem)))

(defun contexture--error-text (problem)
  "Return what to tell the user of PROBLEM, the error of a call.
Where the server names a way out, this names the command for it."
  (let ((data (plist-get problem :data)))
    (if (eq (plist-get data :kind) :capacity-full)
        (contexture--full-text (plist-get data :count) (plist-get data :tokens)
                               (plist-get data :capacity) (plist-get data :pinned))
      (plist-get problem :message))))

(defun contexture--full-text (files tokens capacity pinned)
  "Return words for a context that has no room.
FILES with TOKENS, which are nil for anything but a directory, should
have come to its CAPACITY of items, of which some are PINNED."
  (let ((needed (and files (+ files pinned))))
    (concat
     (if files
         (format "%s (%s) do not fit, as it holds at most %d"
                 (contexture--count files "file") (contexture--count tokens "token")
                 capacity)
       (format "it is full, as it holds at most %d" capacity))
     (if (> pinned 0) (format " (%d pinned)" pinned) "")
     (cond ((and needed (<= needed contexture--max-items))
            (format "; raise that to %d or more with M-x contexture-set-capacity, \
or add a listing" needed))
           (files (format ", and can never hold more than %d; add a smaller \
directory or a listing" contexture--max-items))
           (t "; unpin or remove some, or raise that with \
M-x contexture-set-capacity")))))

(defun contexture--problem-text (problem)
  "Return what to tell the user of PROBLEM, a condition."
  (pcase problem
    (`(contexture-unreadable ,line)
     (format "ignored a line that is no message: %s" line))
    (`(contexture-error ,(and (pred stringp) text) . ,_) text)
    (_ (error-message-string problem))))

;;;; Later

(defun contexture--later (function &rest args)
  "Call FUNCTION with ARGS as soon as Emacs waits for something."
  (apply #'run-at-time 0 nil function args))

;;;; Models

(defcustom contexture-providers nil
  "Models to talk to, besides those of the server's configuration file.
Each is (NAME . PLIST); the server is told of all of them whenever Emacs
reaches it, and keeps them until it ends.  The plist has

  :kind         openai (or any server with its interface), anthropic,
                gemini, ollama or scripted
  :model        what the model is called there
  :base-url     the address, if it is not the usual one of that kind
  :auth-source  t if the key is to be looked up with `auth-source', by
                the host of the address; or a plist of :host and :user.
                The key is given to the server, which keeps it in memory
  :api-key-env, :api-key-command
                the environment variable of the server that has the key,
                or the command that prints it, in place of that
  :context      how many tokens Ollama is to make room for, instead of its
                own default, which is often small
  :max-tokens   how many tokens an answer may have
  :price-input, :price-output
                what a million tokens cost, in any currency
  :default      t if it is to be asked when none is named

`contexture-configure-provider' asks for all of this."
  :type '(alist :key-type (string :tag "Name")
                :value-type (plist :tag "Settings")))

(defvar contexture-providers-hook nil
  "Normal hook run when the server was told of `contexture-providers'.")

(provide 'contexture-base)
;;; contexture-base.el ends here
