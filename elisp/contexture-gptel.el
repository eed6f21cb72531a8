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
;; `:data' and `:buffer', `gptel-use-context', `gptel-system-prompt' and
;; `gptel-prompt-prefix-string'.  It changes no function of gptel.

;;; Code:

(require 'contexture-rpc)
(require 'contexture-marks)

(declare-function gptel-fsm-info "ext:gptel-request" (fsm))
(declare-function gptel-prompt-prefix-string "ext:gptel-request" ())
(declare-function transient-append-suffix "transient" t)
(declare-function transient-remove-suffix "transient" t)
(defvar gptel-mode)
(defvar gptel-model)
(defvar gptel-prompt-transform-functions)
(defvar gptel-system-prompt)
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
           (contexture-gptel--insert (string-trim-right (plist-get rendered :text))))
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
      (insert (if (bobp) "" "\n\n") text "\n\n"))))

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

(provide 'contexture-gptel)
;;; contexture-gptel.el ends here
