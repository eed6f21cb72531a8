;;; contexture-gptel.el --- Send the context with gptel  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-gptel-mode' makes gptel send the context.  It adds one
;; asynchronous function to `gptel-prompt-transform-functions', so Emacs
;; does not wait while the server renders the text; if the server does not
;; answer in time, the request goes on without the context.
;;
;; It needs gptel 0.9.9 or later and uses that hook, `gptel-fsm-info' with
;; `:data' and `:buffer', `gptel-use-context', `gptel-system-prompt',
;; `gptel-track-media', `gptel-markdown-validate-link',
;; `gptel-org-validate-link' and `gptel-prompt-prefix-string'.  It changes no
;; function of gptel.
;;
;; `contexture-import-gptel' takes gptel's models over, so that Contexture can
;; talk to them, too.  It reads `gptel--known-backends', as there is no other
;; list of them, and the slots of each backend.

;;; Code:

(require 'contexture-rpc)
(require 'contexture-marks)

(declare-function gptel-fsm-info "ext:gptel-request" (fsm))
(declare-function gptel-prompt-prefix-string "ext:gptel-request" ())
(declare-function contexture-provider--kept-text "contexture-doctor" (save))
(declare-function contexture-provider--params "contexture-doctor" (entry))
(declare-function contexture-provider--place "contexture-doctor" (entry))
(declare-function gptel--get-api-key "ext:gptel-request" (&optional key))
(declare-function org-element-property "org-element" t t)
(declare-function transient-append-suffix "transient" t)
(declare-function transient-remove-suffix "transient" t)
(defvar contexture-provider--secrets)
(defvar gptel--known-backends)
(defvar gptel-backend)
(defvar gptel-mode)
(defvar gptel-model)
(defvar gptel-prompt-transform-functions)
(defvar gptel-system-prompt)
(defvar gptel-track-media)
(defvar gptel-use-context)

(defcustom contexture-gptel-timeout 2
  "Number of seconds that a gptel request waits for its context.
Emacs itself does not wait.  After that time the request goes on without
the context, and a message says so."
  :type 'number
  :group 'contexture)

(defvar contexture-gptel--told nil
  "Names of the empty contexts that the user was told about.")

(defconst contexture-gptel--key "-x"
  "Key of the context in gptel's menu.")

;;;###autoload
(define-minor-mode contexture-gptel-mode
  "Send the context of the buffer with each request of gptel.
That is all that the buffer sends where you call gptel (see
`contexture-add-to'), so what you added in any file of its
project is sent.  In a buffer of gptel, you can choose another context with
`contexture-switch'.  gptel's option `gptel-use-context' says whether the
context goes into the system message or the prompt; if that option is
nil, nothing is sent.  At most `contexture-limit' tokens are sent.
The echo area shows what was sent; gptel's menu and the header line of
its buffers show what the context has and when it was sent."
  :global t
  :group 'contexture
  (setq contexture-gptel--told nil)
  (remove-hook 'after-load-functions #'contexture-gptel--join-menu)
  (when (featurep 'gptel-transient)
    (ignore-errors
      (transient-remove-suffix 'gptel-menu contexture-gptel--key)))
  (if contexture-gptel-mode
      (contexture-gptel--turn-on)
    (remove-hook 'after-load-functions #'contexture-gptel--loaded)
    (remove-hook 'gptel-mode-hook #'contexture-gptel--join-header)
    (contexture-gptel--in-chats #'contexture-gptel--leave-header)
    (when (boundp 'gptel-prompt-transform-functions)
      (remove-hook 'gptel-prompt-transform-functions
                   #'contexture-gptel--transform))))

(defun contexture-gptel--turn-on ()
  "Add our functions to gptel, or wait until gptel is loaded.
Do not touch gptel's hook before that: gptel would then not set the
hook's default value."
  (cond ((boundp 'gptel-prompt-transform-functions)
         (add-hook 'gptel-prompt-transform-functions
                   #'contexture-gptel--transform t)
         (add-hook 'gptel-mode-hook #'contexture-gptel--join-header)
         (contexture-gptel--in-chats #'contexture-gptel--join-header)
         (contexture-gptel--join-menu))
        ((featurep 'gptel)
         (setq contexture-gptel-mode nil)
         (user-error "This gptel is too old; Contexture needs 0.9.9 or later"))
        (t
         (add-hook 'after-load-functions #'contexture-gptel--loaded)
         (unless (locate-library "gptel")
           (message "Contexture: gptel is not installed; once it is, its requests \
get the context")))))

(defun contexture-gptel--loaded (_file)
  "Add our functions to gptel if gptel was just loaded."
  (when (or (boundp 'gptel-prompt-transform-functions) (featurep 'gptel))
    (remove-hook 'after-load-functions #'contexture-gptel--loaded)
    (with-demoted-errors "Contexture: %S"
      (contexture-gptel--turn-on))))

;;;; gptel's menu and header line

(defvar-local contexture-gptel--sent nil
  "When the context was last sent from this buffer, as text, or nil.")

(defconst contexture-gptel--header '(:eval (concat "  " (contexture-gptel--describe)))
  "Part of a chat's header line that shows the context.")

(defun contexture-gptel--join-menu (&rest _)
  "Show our context in gptel's menu, below its own, once that menu is loaded."
  (if (not (featurep 'gptel-transient))
      (add-hook 'after-load-functions #'contexture-gptel--join-menu)
    (remove-hook 'after-load-functions #'contexture-gptel--join-menu)
    (with-demoted-errors "Contexture is not in gptel's menu: %S"
      (transient-append-suffix 'gptel-menu '(0 1 -1)
        `(,contexture-gptel--key contexture-list
                                 :description contexture-gptel--describe)))))

(defun contexture-gptel--describe ()
  "Return what the context of this buffer has, and when it was sent."
  (let ((totals (contexture--totals-of (contexture--known-context))))
    (concat "Contexture"
            (when totals (concat ": " (contexture--size (car totals) (cdr totals))))
            (when contexture-gptel--sent (concat ", " contexture-gptel--sent)))))

(defun contexture-gptel--in-chats (function)
  "Call FUNCTION in each of gptel's chats."
  (dolist (buffer (buffer-list))
    (when (and (boundp 'gptel-mode) (buffer-local-value 'gptel-mode buffer))
      (with-current-buffer buffer (funcall function)))))

(defun contexture-gptel--join-header ()
  "Show the context in the header line of this chat, before gptel's details.
gptel changes the second element of `header-line-format' while it works."
  (when (and (bound-and-true-p gptel-mode) (consp header-line-format)
             (not (member contexture-gptel--header header-line-format)))
    (setq header-line-format
          (append (cl-subseq header-line-format 0 (min 2 (length header-line-format)))
                  (list contexture-gptel--header)
                  (nthcdr 2 header-line-format)))))

(defun contexture-gptel--leave-header ()
  "No longer show the context in the header line of this chat."
  (when (consp header-line-format)
    (setq header-line-format (remove contexture-gptel--header header-line-format))))

;;;; A request

(defun contexture-gptel--transform (callback fsm)
  "Put the context into the prompt of the request FSM, then call CALLBACK.
This is an asynchronous function of `gptel-prompt-transform-functions'."
  (let* ((info (gptel-fsm-info fsm))
         (prompt (plist-get info :data))
         (origin (plist-get info :buffer)))
    (if (not (and (buffer-live-p origin)
                  (buffer-local-value 'gptel-use-context prompt)))
        (funcall callback)
      (contexture-gptel--fetch
       origin
       (lambda (manager rendered problem)
         (when (buffer-live-p prompt)
           (with-demoted-errors "Contexture: %S"
             (contexture-gptel--put prompt manager rendered problem)
             (when (and (plist-get rendered :report) (buffer-live-p origin))
               (with-current-buffer origin
                 (setq contexture-gptel--sent (format-time-string "sent %H:%M"))
                 (force-mode-line-update))))
           (funcall callback)))))))

(defun contexture-gptel--fetch (origin function)
  "Render the context of the buffer ORIGIN, and call FUNCTION once.
FUNCTION gets the context, a name or a list of layers; the result of
`render-items', or nil; and the problem, or nil."
  (let* ((call (list nil))
         (context (with-current-buffer origin (contexture--known-context)))
         (timer nil)
         (finish (lambda (rendered problem)
                   (when call
                     (setq call nil)
                     (when timer (cancel-timer timer))
                     (funcall function context rendered problem))))
         (refused (lambda (problem)
                    (funcall finish nil (plist-get problem :message)))))
    (condition-case problem
        (let ((asked call))
          (with-current-buffer origin
            (contexture--with-layers
             (lambda ()
               (when call
                 (setq context (contexture-current-context))
                 (setcar asked (contexture-request-async
                                'render-items (contexture--render-params context)
                                :success (lambda (rendered) (funcall finish rendered nil))
                                :error refused))))
             refused))
          (setq timer (run-at-time contexture-gptel-timeout nil
                                   #'contexture-gptel--give-up
                                   (contexture-current-connection) asked finish)))
      (error (funcall finish nil (contexture--problem-text problem))))))

(defun contexture-gptel--give-up (connection asked finish)
  "Cancel the call of CONNECTION whose id is in the list ASKED, if there is one.
Call FINISH with the reason."
  (funcall finish nil (contexture--timeout-text
                       connection contexture-gptel-timeout
                       'contexture-gptel-timeout))
  (when (car asked)
    (contexture--cancel connection (car asked))))

(defun contexture-gptel--put (prompt manager rendered problem)
  "Insert RENDERED, the context named MANAGER, into the buffer PROMPT.
Tell the user so, or why there is nothing to insert: PROBLEM, or an empty
context."
  (cond (problem
         (contexture--message "Contexture: gptel's request is sent without context: %s" problem))
        ((null (plist-get rendered :report))
         (contexture-gptel--tell-empty manager))
        (t
         (with-current-buffer prompt
           (contexture-gptel--insert (contexture--trim-right (plist-get rendered :text))))
         (contexture--message "Contexture: sent the context of %s with gptel (%s, %s)"
                              (contexture--label manager)
                              (contexture--count
                               (length (remq :dropped
                                             (contexture--pluck
                                              :fate (plist-get rendered :report))))
                               "item")
                              (contexture--rendered-size rendered)))))

(defun contexture-gptel--tell-empty (manager)
  "Tell the user once that the context named MANAGER is empty."
  (unless (member manager contexture-gptel--told)
    (push manager contexture-gptel--told)
    (contexture--message "Contexture: nothing sent with gptel: the context of %s is empty%s"
             (contexture--label manager)
             (when contexture--last-manager
               (format "; M-x contexture-switch chooses another, such as %s"
                       (gethash contexture--last-manager contexture--labels
                                contexture--last-manager))))))

;;;; Where in the request

(defun contexture-gptel--insert (text)
  "Insert TEXT into the request whose prompt is in the current buffer.
Put TEXT into the system message if gptel's context goes there and the
model takes one, else before the user's last message."
  (unless (and (eq gptel-use-context 'system)
               (contexture-gptel--insert-in-system text))
    ;; The model's text has the text property `gptel'.  The prefix of a prompt
    ;; is not part of the message, and gptel removes it only at the very
    ;; beginning.
    (goto-char (point-max))
    (unless (or (bobp) (get-text-property (1- (point)) 'gptel))
      (goto-char (previous-single-property-change (point) 'gptel nil (point-min))))
    (let ((start (point))
          (prefix (or (and (fboundp 'gptel-prompt-prefix-string)
                           (gptel-prompt-prefix-string))
                      "")))
      (skip-chars-forward " \t\n")
      (when (looking-at (regexp-quote prefix))
        (goto-char (match-end 0)))
      (delete-region start (point))
      (insert (if (bobp) "" "\n\n") (propertize text 'contexture-gptel t) "\n\n"))
    (contexture-gptel--follow-no-link)))

(defun contexture-gptel--follow-no-link ()
  "Have gptel follow no link of the context in this buffer, which is a prompt.
With `gptel-track-media', gptel sends the files that links name, and a file in
the context may name any.  Links that the user wrote are followed."
  (let ((option (if (derived-mode-p 'org-mode) 'gptel-org-validate-link
                  'gptel-markdown-validate-link)))
    (if (not (boundp option)) (setq-local gptel-track-media nil)
      (let ((theirs (symbol-value option)))
        (set (make-local-variable option)
             (lambda (link)
               (and (not (contexture-gptel--ours-p link)) (funcall theirs link))))))))

(defun contexture-gptel--ours-p (link)
  "Return non-nil unless LINK, of Org or Markdown, stands outside of the context."
  (let ((place (if (integerp (car-safe link)) (car link)
                 (ignore-errors (org-element-property :begin link)))))
    (or (not (integerp place))
        (get-text-property place 'contexture-gptel))))

(defun contexture-gptel--insert-in-system (text)
  "Append TEXT to the system message; return non-nil on success.
Instructions come first: they change less often, so the provider's
prompt cache stays valid for them."
  (when (and (boundp 'gptel-system-prompt)
             (not (memq 'nosystem (and (symbolp gptel-model)
                                       (get gptel-model :capabilities))))
             (or (stringp gptel-system-prompt) (listp gptel-system-prompt))
             (not (functionp gptel-system-prompt)))
    (let* ((parts (ensure-list gptel-system-prompt))
           (message (if (car parts) (concat (car parts) "\n\n" text) text)))
      (setq-local gptel-system-prompt
                  (if (cdr parts) (cons message (cdr parts)) message))
      t)))

;;;; Taking models over

;; A backend becomes an entry of `contexture-providers'.  A key that gptel finds
;; with auth-source is found there by us, too.  Any other key stays where gptel
;; has it: we keep a function that asks gptel for it, until this Emacs ends.

(defconst contexture-gptel--kinds
  '((gptel-openai-responses . "responses")
    (gptel-openai . "openai")
    (gptel-deepseek . "openai")
    (gptel-perplexity . "openai")
    (gptel-anthropic . "anthropic")
    (gptel-gemini . "gemini")
    (gptel-ollama . "ollama"))
  "Alist from types of gptel's backends to kinds of providers.")

(defconst contexture-gptel--import-buffer "*contexture: gptel's models*"
  "Name of the buffer that shows what would be taken over.")

;;;###autoload
(defun contexture-import-gptel ()
  "Take the models of gptel over into `contexture-providers'.
First show what is taken, and ask.  A backend that has the name of a
provider replaces it.  No key is shown or written into a file: keys that
gptel finds with auth-source are found there again, and any other key is
asked of gptel, until this Emacs ends."
  (interactive)
  (require 'contexture-doctor)
  (unless (or (boundp 'gptel--known-backends) (require 'gptel nil t))
    (user-error "Package gptel is not installed"))
  (let* ((found (mapcar (lambda (it) (contexture-gptel--entry (cdr it)))
                        gptel--known-backends))
         (taken (cl-remove-if-not #'consp found :key #'cdr)))
    (unless found (user-error "No backend is known to gptel"))
    (contexture-gptel--show found)
    (cond ((null taken)
           (user-error "None of gptel's backends can be taken over"))
          ((contexture--y-or-n-p
            (format "Take over %s? " (contexture--count (length taken) "model")))
           (contexture-gptel--take taken))
          (t (contexture--message "Contexture: nothing was taken over")))))

(defun contexture-gptel--slot (backend slot)
  "Return what BACKEND has in SLOT."
  (cl-struct-slot-value (type-of backend) slot backend))

(defun contexture-gptel--entry (backend)
  "Return the entry of `contexture-providers' for BACKEND.
Return its name and a string, the reason, if it cannot be taken over."
  (let* ((name (contexture-gptel--slot backend 'name))
         (kind (alist-get (type-of backend) contexture-gptel--kinds))
         (model (if (eq backend (bound-and-true-p gptel-backend)) gptel-model
                  (car (contexture-gptel--slot backend 'models))))
         (headers (contexture-gptel--slot backend 'header))
         (extra (contexture-gptel--slot backend 'request-params)))
    (cond ((null kind) (cons name "Contexture has no such kind of server"))
          ((null model) (cons name "it has no model"))
          (t
           `(,name :kind ,kind :model ,(format "%s" model)
                   ,@(contexture-gptel--address backend kind)
                   ,@(contexture-gptel--key backend)
                   ,@(and (consp headers) (not (functionp headers))
                          (list :headers (contexture-gptel--headers headers)))
                   ,@(and extra (list :extra extra)))))))

(defun contexture-gptel--address (backend kind)
  "Return the address of BACKEND, of KIND, as settings; nil for the usual one."
  (let* ((usual (cdr (assoc kind contexture-provider--kinds)))
         (root (concat (or (contexture-gptel--slot backend 'protocol) "https") "://"
                       (contexture-gptel--slot backend 'host)))
         (endpoint (contexture-gptel--slot backend 'endpoint))
         (path (if (and (stringp endpoint) (member kind '("openai" "responses" "anthropic")))
                   (replace-regexp-in-string
                    "/\\(?:chat/completions\\|responses\\|messages\\)\\'" "" endpoint)
                 ""))
         (url (concat root path)))
    (unless (member usual (list url root)) (list :base-url url))))

(defun contexture-gptel--key (backend)
  "Return settings that say where the key of BACKEND is; nil if it has none."
  (when (contexture-gptel--slot backend 'key)
    '(:auth-source (:user "apikey"))))

(defun contexture-gptel--auth-source-p (key)
  "Return non-nil if gptel finds KEY with auth-source."
  (or (eq key 'gptel-api-key-from-auth-source)
      (and key (symbolp key) (not (fboundp key)) (boundp key)
           (eq (symbol-value key) 'gptel-api-key-from-auth-source))))

(defun contexture-gptel--headers (headers)
  "Return HEADERS, an alist, as those of a provider."
  (cl-loop for (name . value) in headers
           unless (equal (downcase name) "content-type")
           collect (list :name name :value value)))

(defun contexture-gptel--show (found)
  "Show FOUND, entries and what cannot be taken over, without any key."
  (with-current-buffer (get-buffer-create contexture-gptel--import-buffer)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert "Models of gptel, as Contexture would ask them:\n")
      (pcase-dolist (`(,name . ,settings) found)
        (insert (contexture--visible
                 (if (stringp settings)
                     (format "\n%s: not taken, since %s" name settings)
                   (format "\n%s: %s, %s, at %s%s%s" name (plist-get settings :model)
                           (plist-get settings :kind)
                           (or (plist-get settings :base-url) "the usual address")
                           (if (plist-get settings :auth-source)
                               ", with the key that gptel uses" ", without a key")
                           (mapconcat (lambda (it) (concat ", header " (plist-get it :name)))
                                      (plist-get settings :headers) "")))
                 t)))
      (insert "\n\nHeaders that a function of gptel makes are not taken over.\n"))
    (setq buffer-read-only t)
    (goto-char (point-min))
    (display-buffer (current-buffer))))

(defun contexture-gptel--take (taken)
  "Add TAKEN to `contexture-providers', for later sessions, too."
  (let (asked)
    (dolist (entry taken)
      (contexture-provider--params entry) ; this checks ENTRY
      (let ((key (contexture-gptel--slot (alist-get (car entry) gptel--known-backends
                                                    nil nil #'equal)
                                         'key)))
        (when (and key (not (contexture-gptel--auth-source-p key)))
          (push (car entry) asked)
          (puthash (contexture-provider--place entry) (lambda () (gptel--get-api-key key))
                   contexture-provider--secrets))))
    (customize-save-variable
     'contexture-providers
     (append (cl-remove-if (lambda (it) (assoc (car it) taken)) contexture-providers) taken))
    (contexture--message
     "Contexture: took over %s of gptel, %s%s" (contexture--count (length taken) "model")
     (contexture-provider--kept-text t)
     (if asked
         (format "; for later, put %s of %s into ~/.authinfo.gpg, with login apikey"
                 (if (cdr asked) "the keys" "the key") (string-join (nreverse asked) ", "))
       ""))))

(provide 'contexture-gptel)
;;; contexture-gptel.el ends here
