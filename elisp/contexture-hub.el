;;; contexture-hub.el --- Sharing projects with others  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; One buffer shows the hub, a PostgreSQL database, and a switch for this
;; project.  Before the switch is turned on, the buffer has what would be
;; shared, and what is held back.

;;; Code:

(require 'contexture)
(require 'contexture-rpc)
(require 'button)
(require 'cl-lib)

(defconst contexture-hub-buffer "*contexture: hub*"
  "Name of the buffer that shows the hub.")

(defconst contexture-hub--everybody "public"
  "Role that stands for everybody who may use the hub.")

(defvar contexture-hub-readers-history nil
  "Roles with which projects were shared, the last one first.")

(defvar-local contexture-hub--project nil
  "Folder of the project of this buffer, or nil.")

(defvar-local contexture-hub--readers contexture-hub--everybody
  "Role whose members may read the project, once it is shared.")

(defvar-local contexture-hub--shown nil
  "What the server said about the hub: (STATUS . PREVIEW).")

(defvar-local contexture-hub--asked 0
  "Number of the last question of this buffer to the hub.
Answers to earlier ones may be about another project, or other readers.")

(defvar contexture-hub-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap button-buffer-map special-mode-map))
    (define-key map "s" #'contexture-hub-switch)
    (define-key map "r" #'contexture-hub-choose-readers)
    map)
  "Keymap of `contexture-hub-mode'.")

(define-derived-mode contexture-hub-mode special-mode "Hub"
  "Major mode for the hub, and the switch that shares this project there.
\\<contexture-hub-mode-map>\
\\[contexture-hub-switch] turns the switch, and \\[contexture-hub-choose-readers] \
chooses who may read.

See Info node `(contexture)With others'.

\\{contexture-hub-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local revert-buffer-function #'contexture-hub--revert))

;;;###autoload
(defun contexture-hub ()
  "Show the hub, and what sharing this project there would share.
Nothing is shared until you turn the switch on."
  (interactive)
  (let ((project (contexture--project-root)))
    (pop-to-buffer (get-buffer-create contexture-hub-buffer))
    (unless (derived-mode-p 'contexture-hub-mode)
      (contexture-hub-mode))
    (setq contexture-hub--project project
          contexture-hub--readers contexture-hub--everybody)
    (contexture-hub--forget)
    (contexture-hub--revert)))

(defun contexture-hub--forget ()
  "Do not show the hub's answer, since it is about something else."
  (setq contexture-hub--shown nil)
  (let ((inhibit-read-only t))
    (erase-buffer)))

(defun contexture-hub--call (task success &rest more)
  "Have the server do TASK with the hub, and call SUCCESS with what it says.
MORE are further parameters.  SUCCESS is called in this buffer, unless
the buffer has asked for something else meanwhile."
  (let ((buffer (current-buffer))
        (number (cl-incf contexture-hub--asked)))
    (contexture-request-async
     'exchange (append (list :protocol 1 :hub task)
                       (and contexture-hub--project
                            (list :project contexture-hub--project))
                       more)
     :success (lambda (given)
                (contexture--with-live-buffer buffer
                  (when (= number contexture-hub--asked)
                    (funcall success (plist-get given :hub)))))
     :error (lambda (problem)
              (contexture--with-live-buffer buffer
                (when (= number contexture-hub--asked)
                  (contexture-hub--show-error (plist-get problem :message))))))))

(defun contexture-hub--show-error (message)
  "Show MESSAGE, of an error, in place of the hub."
  (setq contexture-hub--shown nil
        header-line-format (contexture--header-line "No hub"))
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert (contexture--visible message t) "\n")))

(defun contexture-hub--revert (&rest _)
  "Ask how the hub is, and what sharing this project would share."
  (let ((inhibit-read-only t))
    (when (zerop (buffer-size))
      (insert "Asking the hub…\n")))
  (contexture-hub--call
   :status
   (lambda (status)
     (if (or (null contexture-hub--project) (contexture-hub--shared status))
         (contexture-hub--show status nil)
       (contexture-hub--call
        :preview (lambda (preview) (contexture-hub--show status preview))
        :readers contexture-hub--readers)))))

(defun contexture-hub--shared (status)
  "Return what STATUS says of this project if it is shared, else nil."
  (contexture--inertly
    (let ((project (and contexture-hub--project
                        (directory-file-name contexture-hub--project))))
      (seq-find (lambda (it) (equal (directory-file-name (plist-get it :project)) project))
                (plist-get status :projects)))))

(defun contexture-hub--readers-text (readers)
  "Return who READERS, a role, are."
  (if (equal readers contexture-hub--everybody) "everybody who may use the hub"
    (format "the members of %s" readers)))

(defun contexture-hub--counts (it)
  "Return how much is shared of IT, a project, and how much is held back."
  (format "%s, %s, %s; held back: %s"
          (contexture--count (plist-get it :sessions) "conversation")
          (contexture--count (plist-get it :messages) "message")
          (contexture--count (plist-get it :memories) "memory" "memories")
          (contexture--count (plist-get it :held) "text")))

(defun contexture-hub--show (status preview)
  "Show STATUS of the hub, and PREVIEW of what would be shared, or nil."
  (let* ((inhibit-read-only t)
         (status (contexture--visible-data status))
         (preview (contexture--visible-data preview))
         (shared (contexture-hub--shared status))
         (it (or shared (car (plist-get preview :projects)))))
    (setq contexture-hub--shown (cons status preview)
          header-line-format
          (contexture--header-line (plist-get status :address)
                                   (if (plist-get status :problem) ": away" "")))
    (erase-buffer)
    (when-let* ((problem (plist-get status :problem)))
      (insert "Not now: " problem "\nWhat you share waits until the hub answers.\n\n"))
    (when-let* ((user (plist-get status :user)))
      (insert (format "You are %s.  %s owns the tables, and can read everything.\n\n"
                      user (plist-get status :owner))))
    (if (not it)
        (insert "This buffer is in no project of this machine.\n")
      (insert-text-button (if shared "[X] Shared" "[ ] Not shared")
                          'action (lambda (_) (contexture-hub-switch))
                          'follow-link t 'help-echo "RET: turn the switch")
      (insert (format ": %s (%s)\n" (plist-get it :project) (plist-get it :identity)))
      (insert (if shared "Shared with " "Would be shared with ")
              (contexture-hub--readers-text (plist-get it :readers)) ": "
              (contexture-hub--counts it) ".\n"
              "Later messages and memories are shared, too.  Results of tools are not.\n")
      (dolist (held (plist-get preview :held))
        (insert "  Held back, looks like a secret: " held "\n")))
    (when-let* ((others (delq shared (copy-sequence (plist-get status :projects)))))
      (insert "\nAlso shared:\n")
      (dolist (other others)
        (insert (format "  %s, with %s: %s\n" (plist-get other :project)
                        (contexture-hub--readers-text (plist-get other :readers))
                        (contexture-hub--counts other)))))
    (goto-char (point-min))
    (ignore-errors (forward-button 1))))

(defun contexture-hub--here ()
  "Signal an error unless this buffer shows the hub and a project."
  (unless (and (derived-mode-p 'contexture-hub-mode) contexture-hub--shown
               contexture-hub--project)
    (user-error "Nothing to share here; type M-x contexture-hub in a project")))

(defun contexture-hub-switch ()
  "Share this project as the buffer shows, or share it no longer.
What was shared is taken back then."
  (interactive)
  (contexture-hub--here)
  (let* ((shared (contexture-hub--shared (car contexture-hub--shown)))
         (preview (car (plist-get (cdr contexture-hub--shown) :projects)))
         (readers (or (plist-get preview :readers) contexture-hub--everybody)))
    (cond (shared
           (when (contexture--y-or-n-p "Share this project no longer, and take back what was shared? ")
             (contexture-hub--call :unshare #'contexture-hub--switched)))
          ((contexture--y-or-n-p (format "Share this with %s? " (contexture-hub--readers-text readers)))
           (contexture-hub--call :share #'contexture-hub--switched :readers readers)))))

(defun contexture-hub--switched (status)
  "Show the hub again after the switch was turned; STATUS may have a problem."
  (contexture-hub--revert)
  (when-let* ((problem (plist-get status :problem)))
    (contexture--message "The hub does not answer now: %s" (contexture--visible problem))))

(defun contexture-hub-choose-readers (readers)
  "Let the members of READERS, a role of the database, read this project."
  (interactive
   (list (read-string (format-prompt "Role of those who may read" contexture-hub--everybody)
                      nil 'contexture-hub-readers-history contexture-hub--everybody)))
  (contexture-hub--here)
  (setq contexture-hub--readers readers)
  (if (not (contexture-hub--shared (car contexture-hub--shown)))
      (progn (contexture-hub--forget)
             (contexture-hub--revert))
    (when (contexture--y-or-n-p (format "Share this with %s from now on? "
                            (contexture-hub--readers-text readers)))
      (contexture-hub--call :share #'contexture-hub--switched :readers readers))))

(provide 'contexture-hub)

;;; contexture-hub.el ends here
