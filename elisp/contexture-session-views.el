;;; contexture-session-views.el --- Notes on the history, turn by turn  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; When a template takes notes on the history of a session, each turn has
;; an entry, even if notes were not needed or failed.  This lists them, the
;; newest first, and shows what the note-taker was asked and answered.

;;; Code:

(require 'contexture-session)
(require 'tabulated-list)
(eval-when-compile (require 'subr-x))

(defconst contexture-session-views-buffer "*contexture: views*"
  "Name of the buffer that lists the notes of a session.")

(defconst contexture-session-view-buffer "*contexture: view*"
  "Name of the buffer that shows the notes of one turn.")

(defconst contexture-session-views--limit 200
  "Maximum number of entries listed.")

(defvar contexture-session-views-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-session-views-show)
    (define-key map (kbd "SPC") #'contexture-session-views-show)
    (define-key map "f" #'contexture-session-views-filter)
    map)
  "Keymap of `contexture-session-views-mode'.")

(defvar-local contexture-session-views--status nil
  "Status of the listed entries, a keyword, or nil for all.")

(define-derived-mode contexture-session-views-mode tabulated-list-mode "Views"
  "Major mode for the notes of a session.
\\<contexture-session-views-mode-map>\\[contexture-session-views-show] shows \
what the note-taker was asked and answered; \\[contexture-session-views-filter] lists
only those with a status.

\\{contexture-session-views-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq tabulated-list-format
        [("Turn" 6 contexture-session-views--by-turn :right-align t)
         ("Template" 14 t) ("Status" 15 t) ("Tokens" 18 nil)
         ("When" 16 t) ("Model or reason" 0 nil)]
        tabulated-list-sort-key nil)
  (setq-local revert-buffer-function #'contexture-session-views--revert)
  (tabulated-list-init-header))

;;;###autoload
(defun contexture-session-views (&optional session)
  "List the notes that were taken on the history of the session.
With a prefix argument, choose a SESSION."
  (interactive (list (if current-prefix-arg
                         (contexture-session--id
                          (contexture-session--read "Notes of"))
                       (contexture-session-views--here))))
  (with-current-buffer (get-buffer-create contexture-session-views-buffer)
    (contexture-session-views-mode)
    (setq contexture-session--shown session
          contexture-session-views--status nil)
    (contexture-session-views--revert))
  (pop-to-buffer contexture-session-views-buffer))

(defvar contexture-repl--session)

(defun contexture-session-views--here ()
  "Return the id of the session of this buffer, or nil."
  (or contexture-session--shown
      (plist-get (bound-and-true-p contexture-repl--session) :id)))

(defun contexture-session-views--revert (&rest _)
  "Fetch the notes of this buffer's session, and list them."
  (let ((buffer (current-buffer)))
    (contexture-session--call
     'list-notes
     (contexture-session-views--params :limit contexture-session-views--limit
                                       :brief t)
     (lambda (views)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (contexture-session-views--draw views)))))))

(defun contexture-session-views--params (&rest plist)
  "Return PLIST with the session and status of this buffer's list."
  (append (contexture-session--params :status contexture-session-views--status)
          plist))

(defun contexture-session-views--draw (views)
  "List VIEWS, from the server."
  (setq tabulated-list-entries
        (mapcar (lambda (view) (list view (contexture-session-views--row view)))
                views)
        header-line-format nil)
  (tabulated-list-init-header)
  (tabulated-list-print t)
  (unless tabulated-list-entries
    (let ((inhibit-read-only t))
      (insert (if contexture-session-views--status
                  "No notes with this status; f lists others.\n"
                "No notes were taken in this session yet; in a conversation, \
C-c C-t turns them on.\n")))))

(defun contexture-session-views--row (view)
  "Return the columns for VIEW."
  (let ((status (contexture--name (plist-get view :status))))
    (vector (format "%s" (or (plist-get view :turn) ""))
            (contexture--visible (or (plist-get view :template) ""))
            (propertize status 'face (if (equal status "failed") 'error 'default))
            (contexture-session-views--tokens view)
            (if (plist-get view :created)
                (contexture-session--time (plist-get view :created)) "")
            (let ((reason (plist-get view :reason)))
              (if (and reason (not (equal reason "")))
                  (concat (let ((step (plist-get view :step)))
                            (if step (concat (contexture--name step) ": ") ""))
                          (contexture--visible reason))
                (contexture--visible (or (plist-get view :model) "")))))))

(defun contexture-session-views--tokens (view)
  "Return a phrase for the tokens of VIEW before and after."
  (let ((before (plist-get view :tokens-before))
        (after (plist-get view :tokens-after)))
    (cond ((and before after) (contexture-session--many-of before after))
          (before (contexture-session--many before "token"))
          (t ""))))

(defun contexture-session-views--by-turn (one other)
  "Return non-nil if the entry ONE has an earlier turn than OTHER."
  (< (or (plist-get (car one) :turn) 0) (or (plist-get (car other) :turn) 0)))

(defun contexture-session-views-filter (status)
  "List only the notes with STATUS, a name; empty or \"all\" lists all."
  (interactive
   (list (completing-read "Status: " '("all" "managed" "below-threshold" "disabled"
                                       "failed")
                          nil t nil nil "all")))
  (setq contexture-session-views--status
        (unless (member status '("all" "")) (intern (concat ":" status))))
  (contexture-session-views--revert))

;;;; One view

(defun contexture-session-views-show ()
  "Show the notes at point, with the request and the answer."
  (interactive)
  (let* ((view (or (tabulated-list-get-id) (user-error "There are no notes here")))
         (place (cl-position view tabulated-list-entries :key #'car))
         (older (contexture-session-views--params
                 :limit (+ place 10)))  ; newer entries may have come meanwhile
         (show (apply-partially #'contexture-session-views--show-found view)))
    (contexture-request-async
     'list-notes (list :view (plist-get view :view) :limit 1)
     :success show
     :error (lambda (problem)
              (if (eql (plist-get problem :code) -32602)
                  ;; An older server without `:view' returns all up to this one.
                  (contexture-session--call 'list-notes older show)
                (contexture-session--show-error problem))))))

(defun contexture-session-views--show-found (view views)
  "Show the full form of VIEW from VIEWS, or VIEW itself if it is not there.
VIEWS have their texts, which VIEW may lack."
  (contexture-session-views--show
   (or (cl-find (plist-get view :view) views :test #'equal
                :key (lambda (it) (plist-get it :view)))
       view)))

(defun contexture-session-views--show (view)
  "Show VIEW in its own buffer."
  (with-current-buffer (get-buffer-create contexture-session-view-buffer)
    (let ((inhibit-read-only t))
      (special-mode)
      (setq-local word-wrap t)
      (erase-buffer)
      (contexture-session-views--insert view)
      (contexture--show-hidden)
      (goto-char (point-min)))
    (display-buffer (current-buffer))))

(defun contexture-session-views--insert (view)
  "Insert all data of VIEW: short values first, then its texts.
Of the texts, the result comes first and the request last."
  (let (texts)
    (cl-loop for (key value) on view by #'cddr do
             (let ((name (capitalize (string-replace "-" " " (contexture--name key)))))
               (cond ((or (null value)
                          (and (eq key :id) (equal value (plist-get view :view)))))
                     ((and (stringp value)
                           (or (string-search "\n" value) (> (length value) 80)))
                      (if (eq key :payload)
                          (setq texts (append texts (list (cons name value))))
                        (push (cons name value) texts)))
                     (t (insert (format "%-17s %s\n" name
                                        (contexture-session-views--value key value)))))))
    (pcase-dolist (`(,name . ,text) texts)
      (insert "\n" (propertize name 'face 'bold) "\n\n" (string-trim-right text) "\n"))))

(defun contexture-session-views--value (key value)
  "Return VALUE of KEY in a view as text."
  (cond ((and (eq key :created) (numberp value)) (contexture-session--time value))
        ((eq value t) "yes")
        ((keywordp value) (contexture--name value))
        ((eq key :path) (contexture--visible (abbreviate-file-name value)))
        ((listp value) (mapconcat (lambda (it) (contexture--name it)) value ", "))
        (t (contexture--format "%s" value))))

(provide 'contexture-session-views)
;;; contexture-session-views.el ends here
