;;; contexture-trust.el --- Trust the templates of a project  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Somebody else may have written a project, and its templates determine
;; what a model is told.  So they are used only once you trust the project:
;; when a conversation first needs one, you are asked, once in each Emacs,
;; and can look at them first.  The server keeps the answer;
;; `contexture-distrust-project' revokes it.

;;; Code:

(require 'contexture-call)
(require 'contexture-probe)
(require 'project)
(eval-when-compile (require 'subr-x))

(declare-function contexture-doctor--finding "contexture-doctor-models"
                  (status text &optional advice &rest actions))
(declare-function contexture-repl--trust-changed "contexture-repl-settings" (project))
(declare-function project-root "project" (project))
(defvar contexture-doctor-timeout)
(defvar contexture-doctor--address)
(defvar contexture-repl--session)

(defconst contexture-trust-buffer "*contexture: templates*"
  "Name of the buffer that shows a project's templates.")

(defconst contexture-trust--longest 20000
  "Maximum number of bytes of a template to show.")

(defvar contexture-trust--asked nil
  "Projects about which the user was asked in this Emacs.")

;;;; Commands

(defun contexture-trust--project-here ()
  "Return the project of this conversation or buffer, or its folder."
  (directory-file-name
   (expand-file-name
    (or (plist-get (bound-and-true-p contexture-repl--session) :project)
        (when-let* ((project (project-current))) (project-root project))
        default-directory))))

;;;###autoload
(defun contexture-trust-project (project)
  "Trust PROJECT, a folder, so that its own templates are used.
They are the files in its `.contexture/templates', and determine what a
model is told.  Trust is tied to the folder and its Git remote, if it has
one: trust the project again if one of the two changes."
  (interactive
   (list (read-directory-name "Trust the templates of project: "
                              (contexture-trust--project-here) nil t)))
  (contexture-trust--trust project #'ignore))

;;;###autoload
(defun contexture-distrust-project (project)
  "Stop trusting PROJECT, a folder, so that its own templates are not used."
  (interactive
   (let ((known (mapcar (lambda (trusted) (plist-get trusted :project))
                        (contexture-request 'list-trusted-projects))))
     (unless known (user-error "No project is trusted"))
     (list (completing-read "Stop trusting: "
                            (mapcar #'contexture--visible-candidate known) nil t nil nil
                            (car (member (contexture-trust--project-here) known))))))
  (let ((project (directory-file-name (expand-file-name project))))
    (setq contexture-trust--asked (delete project contexture-trust--asked))
    (contexture-request-async
     'distrust-project (list :project project)
     :success (lambda (answer)
                (contexture--message (if (plist-get answer :was-trusted)
                             "%s is no longer trusted"
                           "%s was not trusted")
                         (abbreviate-file-name project))
                (contexture-trust--changed project)))))

(defun contexture-trust--changed (project)
  "Update conversations after PROJECT became trusted or untrusted."
  (when (featurep 'contexture-repl)
    (contexture-repl--trust-changed project)))

(defun contexture-trust--trust (project then)
  "Trust PROJECT, and call THEN with non-nil on success, else nil."
  (let ((project (directory-file-name (expand-file-name project))))
    (contexture-request-async
     'trust-project (list :project project)
     :success (lambda (answer)
                (let ((templates (plist-get answer :templates)))
                  (contexture--message "%s is trusted; %s" (abbreviate-file-name project)
                           (if templates
                               (format "its templates %s are used"
                                       (string-join templates ", "))
                             "it has no templates yet")))
                (contexture-trust--changed project)
                (funcall then t))
     :error (lambda (problem)
              (contexture-show-error problem)
              (funcall then nil)))))

;;;; Asking

(defun contexture-trust--ask (project templates then)
  "Ask once whether to trust PROJECT, which has TEMPLATES, files.
Call THEN with non-nil once it is trusted, or nil if it is not."
  (if (member project contexture-trust--asked) (funcall then nil)
    (push project contexture-trust--asked)
    (if (contexture-trust--decide project templates)
        (contexture-trust--trust project then)
      (contexture--message "Not trusted; %s trusts it later"
               (substitute-command-keys "\\[contexture-trust-project]"))
      (funcall then nil))))

(defun contexture-trust--decide (project templates)
  "Return non-nil if the user trusts PROJECT, which has TEMPLATES, files."
  (let ((prompt (format "%s has its own templates, which determine what a model is told.  \
Trust them? " (contexture--visible (abbreviate-file-name project))))
        answer)
    (save-window-excursion
      (while (eq ?s (setq answer (car (read-multiple-choice
                                       prompt '((?y "yes") (?n "no")
                                                (?s "show them"))))))
        (contexture-trust--show templates)))
    (eq answer ?y)))

(defun contexture-trust--show (templates)
  "Show the text of TEMPLATES, files, without running any code in them."
  (with-current-buffer (get-buffer-create contexture-trust-buffer)
    (let ((inhibit-read-only t))
      (special-mode)
      (erase-buffer)
      (dolist (file templates)
        (insert (propertize (format "%s\n" (contexture--visible (file-truename file))) 'face 'bold))
        (if (not (file-regular-p file)) (insert "This is not a regular file.\n")
          (goto-char (+ (point) (cadr (insert-file-contents
                                       file nil 0 contexture-trust--longest))))
          (unless (bolp) (insert "\n")))
        (insert "\n"))
      (contexture--show-hidden)
      (goto-char (point-min))
      (display-buffer (current-buffer)))))

;;;; The doctor

(defun contexture-doctor--check-trust (then)
  "Call THEN with the findings on trusted projects."
  (if (or (not (contexture-running-p)) (bound-and-true-p contexture-doctor--address))
      (funcall then (list (contexture-doctor--finding
                           'note "Trust is checked once Emacs is connected")))
    (contexture--probe-call
     'list-trusted-projects nil contexture-doctor-timeout
     (lambda (outcome projects)
       (funcall then
                (cond ((not (eq outcome 'answered))
                       (list (contexture-doctor--finding
                              'note "The server does not list trusted projects"
                              (and (stringp projects) projects))))
                      ((null projects)
                       (list (contexture-doctor--finding
                              'ok "No project is trusted; templates of projects are not used")))
                      (t (mapcar #'contexture-trust--finding projects))))))))

(defun contexture-trust--finding (trusted)
  "Return the finding on TRUSTED, a project."
  (let* ((project (plist-get trusted :project))
         (name (contexture--visible
                (format "%s%s" (abbreviate-file-name project)
                        (if-let* ((remote (plist-get trusted :remote)))
                            (format " (%s)" remote) ""))))
         (revoke (cons "Stop trusting it"
                       (lambda () (contexture-distrust-project project)))))
    (pcase (contexture--name (plist-get trusted :standing))
      ("same" (contexture-doctor--finding
               'ok (format "%s is trusted; its templates are used" name) nil revoke))
      ("other" (contexture-doctor--finding
                'note (format "%s was trusted, but something else is there now; trust it again"
                              name)
                nil revoke))
      (_ (contexture-doctor--finding
          'note (format "%s was trusted, but is gone" name) nil revoke)))))

(provide 'contexture-trust)
;;; contexture-trust.el ends here
