;;; contexture-lisp-repl.el --- REPLs of Lisp clients  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Reads the input and output of a Lisp's REPL from its buffer, by the
;; text properties that the client sets.
;;
;; Also implements `contexture-slime-mode' and `contexture-sly-mode': keys
;; behind the client's prefix and, in REPLs connected to Contexture, typing
;; of prose, without argument lists or the comma shortcut.  Before input is
;; sent there, the server is told what changed in buffers.

;;; Code:

(require 'contexture-lisp)
(eval-when-compile (require 'subr-x))

(declare-function contexture-live--push-and-wait "contexture-live" ())

(autoload 'contexture-sources--add-all "contexture-sources")

(defconst contexture-lisp--no-value "\\`; No values?\\'"
  "Regexp for what a client prints when there is no value.")

(defconst contexture-lisp--failure
  "^; \\(Evaluation aborted on\\|Debugger entered on\\) \\(.*?\\)\\.?$"
  "Regexp for what a client prints after an error.")

;;;; History

(defun contexture-lisp--add-history (client count)
  "Add the last COUNT interactions of a REPL of CLIENT."
  (when (< count 1)
    (user-error "Ask for at least one interaction"))
  (let* ((connection (contexture-lisp--connection client))
         (lisp (contexture-lisp--implementation client connection))
         (interactions
          (with-current-buffer (contexture-lisp--repl client connection)
            (mapcar (lambda (interaction)
                      (append interaction (list :buffer (buffer-name) :lisp lisp)))
                    (contexture-lisp--interactions client count)))))
    (unless interactions
      (user-error "Nothing has been evaluated in the REPL yet"))
    (contexture-sources--add-all
     (mapcar (lambda (interaction)
               (cons 'add-item (contexture-lisp--interaction-params interaction)))
             interactions)
     "interaction")))

(defun contexture-lisp--repl (client connection)
  "Return this buffer if it is a REPL of CLIENT, else the REPL of CONNECTION."
  (cond ((not (derived-mode-p (contexture-lisp--client-repl-mode client)))
         (or (contexture-lisp--ask client 'repl connection)
             (contexture--user-error "%s has no REPL" (contexture-lisp--client-name client))))
        ((contexture-lisp--agent-p client)
         (user-error "This REPL is a conversation with Contexture; \
its session already has the text"))
        (t (current-buffer))))

(defun contexture-lisp--interactions (client count)
  "Return the last COUNT interactions of this REPL of CLIENT, oldest first.
Each is a plist of `:prompt', `:input', `:output', and `:value' or
`:error'.  An interaction that still runs is left out, unless it is in a
debugger."
  (save-restriction
    (widen)
    (let ((end (point-max))
          interactions)
      (while (and (< (length interactions) count)
                  (> end (point-min)))
        (let ((start (contexture-lisp--prompt-before client end)))
          (when-let* ((interaction (and start (contexture-lisp--interaction
                                               client start end))))
            (push interaction interactions))
          (setq end (or start (point-min)))))
      interactions)))

(defun contexture-lisp--prompt-before (client position)
  "Return the start of CLIENT's last prompt before POSITION, or nil."
  (cl-flet ((behind-prompt-p ()
              (and (> position (point-min))
                   (eq (contexture-lisp--ask client 'kind (1- position)) 'prompt)))
            (go-back ()
              (setq position (or (previous-property-change position) (point-min)))))
    (while (and (> position (point-min)) (not (behind-prompt-p)))
      (go-back))
    (when (behind-prompt-p)
      (while (behind-prompt-p)
        (go-back))
      position)))

(defun contexture-lisp--interaction (client start end)
  "Return the interaction of CLIENT from START, a prompt, to END, or nil.
Return nil if nothing was sent, or if there is no result yet."
  (pcase-let* ((`(,prompt ,input ,output ,rest)
                (contexture-lisp--parts client start end))
               (outcome (contexture-lisp--outcome client rest (= end (point-max)))))
    (and outcome
         (not (string-blank-p input))
         (append (list :prompt (string-trim prompt)
                       :input (string-trim-right input))
                 (contexture--plist
                  :output (and (not (string-blank-p output))
                               (string-trim-right output "\n")))
                 outcome))))

(defun contexture-lisp--parts (client start end)
  "Return prompt, input, output and the rest between START and END, as texts.
CLIENT's text properties tell them apart.  Input that a running program
reads is part of its output."
  (let ((position start) seen prompt input output rest)
    (while (< position end)
      (let* ((next (next-property-change position nil end))
             (text (buffer-substring-no-properties position next))
             (kind (contexture-lisp--ask client 'kind position)))
        (pcase kind
          ('prompt (push text prompt))
          ((and 'input (guard (memq seen '(prompt input)))) (push text input))
          ((or 'input 'output) (push text output))
          ((guard (and (eq seen 'input) (string-blank-p text)))) ; the end of the input's line
          (_ (push text rest)))
        (setq seen (or kind 'rest)
              position next)))
    (mapcar (lambda (texts) (apply #'concat (nreverse texts)))
            (list prompt input output rest))))

(defun contexture-lisp--outcome (client text last)
  "Return the outcome that TEXT, the rest of an interaction, shows.
It is a plist with `:value' or `:error', or nil if there is none yet.
LAST non-nil means that no prompt follows; then ask CLIENT's debugger."
  (let ((text (string-trim text)))
    (cond ((string-match contexture-lisp--failure text)
           (list :error (match-string 2 text)))
          ((not (string-empty-p text))
           (list :value text))
          (last (when-let* ((debugger (contexture-lisp--debugger-here client)))
                  (list :error (with-current-buffer debugger
                                 (plist-get (contexture-lisp--ask client 'debugger)
                                            :message)))))
          (t (list :value "; No value")))))

(defun contexture-lisp--debugger-here (client)
  "Return a debugger of CLIENT of the connection of this buffer, or nil."
  (let ((connection (contexture-lisp--ask client 'buffer-connection)))
    (cl-find-if (lambda (buffer)
                  (with-current-buffer buffer
                    (and (derived-mode-p (contexture-lisp--client-debugger-mode client))
                         (eq connection (contexture-lisp--ask client 'buffer-connection)))))
                (buffer-list))))

(defun contexture-lisp--interaction-params (interaction)
  "Return parameters that add INTERACTION, a plist."
  (list :type :repl-history
        :content (contexture-lisp--interaction-text interaction)
        :metadata `(:origin :repl :language "lisp" ,@interaction ,@(contexture--as-of))))

(defun contexture-lisp--interaction-text (interaction)
  "Return INTERACTION, a plist, as text in the form of a REPL."
  (let ((output (plist-get interaction :output))
        (value (plist-get interaction :value)))
    (concat (plist-get interaction :prompt) " " (plist-get interaction :input) "\n"
            (and output (concat output "\n"))
            (cond ((null value)
                   (concat "; Error: " (string-replace "\n" "\n; "
                                                       (plist-get interaction :error))))
                  ((string-match-p contexture-lisp--no-value value) value)
                  (t (concat "=> " value)))
            "\n")))

;;;; REPLs of Contexture itself

(defvar contexture-lisp--agent-mode-map
  (let ((map (make-sparse-keymap)))
    (dolist (command '(slime-handle-repl-shortcut slime-space slime-autodoc-space
                       sly-mrepl-shortcut sly-autodoc-space))
      (define-key map (vector 'remap command) #'self-insert-command))
    ;; Indenting prose as Lisp fails if its parentheses do not match.
    (dolist (command '(indent-for-tab-command
                       slime-fuzzy-indent-and-complete-symbol
                       sly-mrepl-indent-and-complete-symbol))
      (define-key map (vector 'remap command) #'completion-at-point))
    map)
  "Keymap of `contexture-lisp--agent-mode'.")

(defvar-local contexture-lisp--autodoc nil
  "Client whose argument lists were shown in this buffer before.")

(define-minor-mode contexture-lisp--agent-mode
  "Minor mode for typing prose in a REPL connected to Contexture.
The comma and the space insert themselves, TAB only completes, and no
argument lists are shown."
  :init-value nil
  :interactive nil
  :keymap contexture-lisp--agent-mode-map
  (cond ((not contexture-lisp--agent-mode)
         (when contexture-lisp--autodoc
           (contexture-lisp--ask contexture-lisp--autodoc 'autodoc t))
         (kill-local-variable 'contexture-lisp--autodoc))
        (t
         (when-let* ((client (contexture-lisp--agent-client)))
           (when (contexture-lisp--ask client 'autodoc)
             (setq contexture-lisp--autodoc client)
             (contexture-lisp--ask client 'autodoc nil))))))

(defvar contexture-lisp--on nil
  "Alist from each client whose mode is on to a list (KEY BINDING).
KEY is the event that the mode bound, and BINDING its former binding.")

(defun contexture-lisp--agent-client ()
  "Return the client whose mode is on and whose REPL this buffer is, or nil."
  (cl-find-if (lambda (client)
                (derived-mode-p (contexture-lisp--client-repl-mode client)))
              (mapcar #'car contexture-lisp--on)))

(defun contexture-lisp--agent-p (client)
  "Return non-nil if this is a REPL of CLIENT connected to Contexture."
  (and (derived-mode-p (contexture-lisp--client-repl-mode client))
       (contexture-lisp--to-agent-p
        client (contexture-lisp--ask client 'buffer-connection))))

(defun contexture-lisp--to-agent-p (client connection)
  "Return non-nil if CONNECTION of CLIENT is to Contexture."
  (and (process-live-p connection)
       (equal (contexture-lisp--ask client 'type connection) "Contexture")))

(defun contexture-lisp--before-message (message)
  "Tell Contexture what it has to know if MESSAGE of a client asks it.
That is what changed in buffers and, after SLIME has connected again in
the same REPL, its directory.  Return nil, so that the client then sends
MESSAGE."
  (when (contexture-lisp--question-p message)
    (when-let* ((client (contexture-lisp--agent-client)))
      (when (contexture-lisp--agent-p client)
        (contexture-lisp--tell-directory client)))
    (when (and (bound-and-true-p contexture-live--buffers)
               (cl-some (lambda (client)
                          (contexture-lisp--to-agent-p
                           client (contexture-lisp--ask client 'current)))
                        (mapcar #'car contexture-lisp--on)))
      (contexture-live--push-and-wait)))
  nil)

(defun contexture-lisp--question-p (message)
  "Return non-nil if MESSAGE, which a client is about to handle, has input.
Such are the lines of a REPL, and forms to evaluate."
  (pcase message
    (`(:emacs-channel-send ,_ (:process . ,_)) t)
    (`(:emacs-rex (,function . ,_) . ,_)
     (string-match-p "[:-]eval" (symbol-name function)))))

(defun contexture-lisp--free-agents ()
  "Turn `contexture-lisp--agent-mode' on in REPLs connected to Contexture."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when-let* ((client (contexture-lisp--agent-client)))
        (when (and (contexture-lisp--agent-p client)
                   (not contexture-lisp--agent-mode))
          (contexture-lisp--tell-directory client)
          (contexture-lisp--agent-mode))))))

(defun contexture-lisp--tell-directory (client)
  "Tell Contexture the directory of this REPL of CLIENT, once.
The conversation shows the items of that directory's project."
  (let ((connection (contexture-lisp--ask client 'buffer-connection)))
    (unless (or (file-remote-p default-directory)
                (process-get connection 'contexture-told))
      (process-put connection 'contexture-told t)
      (contexture-lisp--ask
       client 'send connection
       (list (intern (format "%s:set-default-directory"
                             (contexture-lisp--client-prefix client)))
             (expand-file-name default-directory))
       "contexture" t #'ignore))))

(defun contexture-lisp--free-agents-soon ()
  "Call `contexture-lisp--free-agents' when the new REPL is complete."
  (run-at-time 0 nil #'contexture-lisp--free-agents))

;;;; Modes

(defun contexture-lisp--switch (client on map)
  "Turn the mode of CLIENT, with the keymap MAP, on or off according to ON."
  (if on
      (unless (assq client contexture-lisp--on)
        (contexture-lisp--turn-on client map))
    (when (assq client contexture-lisp--on)
      (contexture-lisp--turn-off client))))

(defun contexture-lisp--turn-on (client map)
  "Bind the key of the mode of CLIENT to MAP, and allow prose in its REPLs."
  (let* ((event (aref (kbd contexture-lisp-key) 0))
         (prefix-map (contexture-lisp--ask client 'prefix-map)))
    (push (list client event (lookup-key prefix-map (vector event)))
          contexture-lisp--on)
    (define-key prefix-map (vector event) map)
    (add-hook (contexture-lisp--client-repl-hook client)
              #'contexture-lisp--free-agents-soon)
    (add-hook (contexture-lisp--client-event-hook client)
              #'contexture-lisp--before-message)
    (contexture-lisp--free-agents)))

(defun contexture-lisp--turn-off (client)
  "Undo what `contexture-lisp--turn-on' did for CLIENT."
  (pcase-let ((`(,event ,before) (cdr (assq client contexture-lisp--on)))
              (prefix-map (contexture-lisp--ask client 'prefix-map)))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and contexture-lisp--agent-mode
                   (eq client (contexture-lisp--agent-client)))
          (contexture-lisp--agent-mode -1))))
    (if before
        (define-key prefix-map (vector event) before)
      (setcdr prefix-map (assq-delete-all event (cdr prefix-map))))
    (remove-hook (contexture-lisp--client-repl-hook client)
                 #'contexture-lisp--free-agents-soon)
    (remove-hook (contexture-lisp--client-event-hook client)
                 #'contexture-lisp--before-message)
    (setq contexture-lisp--on (assq-delete-all client contexture-lisp--on))))

(provide 'contexture-lisp-repl)
;;; contexture-lisp-repl.el ends here
